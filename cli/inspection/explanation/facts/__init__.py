"""What is told of a window: facts with their numbers, for windows that follow one another and for those that keep rows.

Imports `cli.console`, `cli.inspection.explanation.windows`, `windowing`. Imported by
`cli.inspection.explanation.explanation`, `cli.inspection.explanation.missing`, `cli.inspection.explanation.text`,
`cli.inspection.explanation.why`.
"""
