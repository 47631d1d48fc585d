"""Events of committed changes on their way."""
