"""The demo: a small product around one governed agent run."""
