"""Agent runs, framework free; `agno` holds the one framework that is plugged in."""
