"""Sequences: the rows of each key in their one total order, and the window marks between the rows."""
