"""The operator's side of the journal: outcomes nobody knows, and claims nobody proposes again."""
