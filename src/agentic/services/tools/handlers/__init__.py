"""What handlers use: the governed HTTP client and the neutral errors."""
