"""Work that a provider finishes after the call that began it has returned."""
