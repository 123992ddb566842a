"""The units of a range before it runs: which run and why, which may, and how long that takes by earlier runs.

Imports `cli.backfill`, `cli.inspection.forecast.forecast`, `cli.job`, `cli.request`, `conf`, `windowing`, `writers`.
Imported by `cli.inspection.forecast.foresee`.
"""
