"""The command line. The entry point is `main`; only `console.messages` writes to stderr.

Imports `conf`, `readers`, `windowing`, `writers`. Imported by nothing.
"""
