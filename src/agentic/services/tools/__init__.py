"""What a tool is, and the one way it runs."""
