"""Windows over rows that come in batches, one after another."""
