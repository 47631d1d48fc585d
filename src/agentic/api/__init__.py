"""The HTTP edge: runs, approvals and uncertain calls for people, with authentication and tenancy decided here and nowhere below."""
