"""What stands in on one machine: embedded Postgres, the embedded function engine, provider stand-ins, the demo."""
