"""Stand-ins for outside providers: they speak the vendor's HTTP, keep what they did, and fail when told to."""
