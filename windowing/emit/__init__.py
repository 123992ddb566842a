"""Panes to result tables: rows of aggregates or of the input, groups, operators, stream columns.

The way in is `result_tables`; `scan.scan` calls it.
"""
