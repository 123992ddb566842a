"""What a folder that wincli wrote holds: a result, the results of a range, or a state.

Imports `cli.backfill`, `cli.console`, `cli.request`, `conf`, `readers`, `windowing`, `writers`. Imported by
`cli.commands`, `cli.inspection.cases`, `cli.inspection.comparison`, `cli.inspection.explanation`,
`cli.inspection.report`, `cli.inspection.results.status`.
"""
