"""Ranges: their units, and the paths of each unit.

Imports `windowing`. Imported by `cli`, `conf.job_checks`.
"""
