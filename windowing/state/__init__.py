"""What windows keep from one run to the next, as values and as Arrow tables."""
