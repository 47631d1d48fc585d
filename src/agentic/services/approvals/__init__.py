"""People deciding calls: filed with the parking of their run, decided once."""
