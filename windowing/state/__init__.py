"""What windows keep between runs, as values and as Arrow tables."""
