"""The story of somebody else's tool server: added, verified, activated, read through, written through once, and never obeyed."""
