"""Panes to result tables: rows of aggregates or of the input, groups, operators, stream columns."""
