"""The page of a report: one HTML file with its style, its pictures and its script.

Imports `cli.console`, `cli.inspection.report.report`, `conf`, `windowing`. Imported by `cli.inspection.report.write`.
"""
