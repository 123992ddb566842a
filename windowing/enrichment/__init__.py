"""Rows get columns of another log or table: a lookup by key, or the row next to them in order."""
