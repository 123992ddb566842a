"""Ranges of units on a state: which units run, late data, corrections.

The way in is `range_run`.
"""
