"""A report on a result, on the results of a range, or on a state: what it shows, as values, and one page of these.

Imports `cli.console`, `cli.inspection.results`, `cli.request`, `conf`, `readers`, `windowing`, `writers`. Imported by
`cli.commands`.
"""
