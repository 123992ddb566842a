"""What those who operate a run see of it: metrics for Prometheus, and OpenLineage events.

The entry point is `monitors.monitored`. Nothing of it is loaded for a run that asks for neither.

Imports `cli.console`, `cli.job`, `cli.planning`, `cli.request`, `conf`, `windowing`, `writers`. Imported by
`cli.inspection`, `cli.launch`.
"""
