"""The demo's second story: addresses that a provider finds later, and reports through a signed callback."""
