"""Outputs and states: a run writes them to staging folders, and a commit publishes all of them or none.

The entry points are `output.output.open_output` and `state.state.open_state`.

Imports `windowing`. Imported by `cli`.
"""
