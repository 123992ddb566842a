"""The parsed job request, the names of its stages in messages, and whether a run before was of the same.

The entry point is `request.parse_request`.

Imports `conf`, `readers`, `windowing`. Imported by `cli.backfill`, `cli.commands`, `cli.inspection`, `cli.job`,
`cli.launch`, `cli.monitoring`, `cli.planning`.
"""
