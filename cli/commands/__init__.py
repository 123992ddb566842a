"""One module for each command, with its options; what it does is imported when it is called.

Imports `cli.arguments`, `cli.console`, `cli.inspection`, `cli.job`, `cli.launch`, `cli.request`, `conf`, `readers`,
`windowing`, `writers`. Imported by `cli.main`.
"""
