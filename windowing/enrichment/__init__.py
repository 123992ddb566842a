"""Rows get columns of another log or table: a lookup by key, or the newest row at or before."""
