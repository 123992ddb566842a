"""Rows of keys in total order, their marks and panes, and the columns that a stage reads and adds."""
