"""Everything a product needs on one machine: API, function engine and workers, started together and stopped in order."""
