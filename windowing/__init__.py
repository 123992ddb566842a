"""Exact windows over ordered rows."""
