"""What a run would do, found before it: its input, its windows, its units and its time, without Spark or any trace.

The way in is `command.plan_command`. It describes the very objects that a run executes.

Imports `cli.arguments`, `cli.backfill`, `cli.console`, `cli.inspection.effect`, `cli.job`, `cli.launch`,
`cli.monitoring`, `cli.planning`, `cli.request`, `conf`, `readers`, `windowing`, `writers`. Imported by `cli.commands`.
"""
