"""Command-line arguments: the options, their help page, shell completion, and environment variables, made from the
declarations of options.

Imports `conf`, `windowing`. Imported by `cli.commands`, `cli.inspection`, `cli.launch`, `cli.main`.
"""
