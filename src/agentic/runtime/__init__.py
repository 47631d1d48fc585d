"""What a run is, and how it is led from its first message to a terminal state."""
