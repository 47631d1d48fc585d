"""The use cases, each in a room of its own; they meet in the tools room and nowhere else."""
