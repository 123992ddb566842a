"""Why a window of a result is as it is: its rows, what opened and closed it, and what came close.

The entry point is `why.print_why`. The window is found in the result, the rows of its key in the files that the
manifest names, and the window is computed once more with the plan of the job.

Imports `cli.backfill`, `cli.console`, `cli.inspection.results`, `cli.job`, `cli.launch`, `cli.planning`, `cli.request`,
`conf`, `readers`, `windowing`, `writers`. Imported by `cli.commands`.
"""
