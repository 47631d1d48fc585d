"""What usage costs: prices, and what a run, a tree and a day have spent. Amounts are exact decimals in US dollars."""
