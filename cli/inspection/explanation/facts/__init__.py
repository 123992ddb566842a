"""The facts of a window, with their numbers, for each kind of window.

Imports `cli.console`, `cli.inspection.explanation.windows`, `windowing`. Imported by
`cli.inspection.explanation.explanation`, `cli.inspection.explanation.missing`, `cli.inspection.explanation.text`,
`cli.inspection.explanation.why`.
"""
