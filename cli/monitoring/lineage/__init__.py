"""OpenLineage events of a command and of its units: jobs, runs, datasets, and which column comes from which.

The entry point is `observer.Lineage`. Only `events` and `transport` import openlineage.

Imports `cli.console`, `cli.job`, `cli.planning`, `cli.request`, `conf`, `windowing`, `writers`. Imported by
`cli.monitoring.monitors`.
"""
