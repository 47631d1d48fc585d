"""The platform contract: pure values and pure functions that every room speaks in. It knows no framework and no store."""
