"""What a run is to the store."""
