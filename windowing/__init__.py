"""Exact windows over ordered rows.

This level has what users import (`in_memory.aggregate`, `operator`), the `errors`, and the contracts with readers,
writers and Spark (`ports`). All other packages are internal.

Imports nothing. Imported by `cli`, `conf`, `readers`, `writers`.
"""
