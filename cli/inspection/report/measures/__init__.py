"""What a report measures on the panes of results, in a memory that does not grow with them.

Imports `cli.inspection.report.calendar`, `cli.inspection.report.chosen`, `cli.inspection.report.report`,
`cli.inspection.results`, `windowing`. Imported by `cli.inspection.report.gather`.
"""
