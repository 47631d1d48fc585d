"""Artifacts: what a call left to be kept beside its answer, for people and never for a model (ADR 0014)."""
