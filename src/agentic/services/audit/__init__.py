"""Checks the record of a run against itself: nothing altered, removed, inserted or exchanged since it was written (ADR 0030)."""
