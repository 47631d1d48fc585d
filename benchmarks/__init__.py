"""Measured figures of the platform, on a real Postgres of their own. `README.md` says how to read them."""
