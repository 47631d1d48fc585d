"""Accounts that calls act in: which one is meant, and its credential, kept sealed (docs/connections.md)."""
