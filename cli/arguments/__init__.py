"""Command-line arguments: the options, their help page, shell completion, and environment variables.

Imports `windowing`. Imported by `cli.commands`, `cli.main`.
"""
