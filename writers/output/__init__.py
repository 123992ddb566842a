"""One output from the first check to the commit: its partitions, its parts and its manifest."""
