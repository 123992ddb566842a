"""A window found in a result, and computed once more from the rows of its key: the job of the manifest, planned again.

Imports `cli.backfill`, `cli.console`, `cli.inspection.results`, `cli.job`, `cli.launch`, `cli.planning`, `cli.request`,
`conf`, `readers`, `windowing`, `writers`. Imported by `cli.inspection.explanation.facts`,
`cli.inspection.explanation.missing`, `cli.inspection.explanation.why`.
"""
