"""Aggregates of panes: a call bound to a schema, then computed over ranges of rows, exactly."""
