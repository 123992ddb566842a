"""Exact windows over ordered rows.

At this level stand what users import (`in_memory.aggregate`, `operator`), the `errors`, and the contracts with readers,
writers and Spark (`ports`). Everything else is for the program.
"""
