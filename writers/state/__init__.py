"""States: their layout on disk, the records of units, the staging of a unit, the journal of a commit, and recovery.

The entry point is `state.open_state`.

Imports `windowing`, `writers.commit`, `writers.folders`, `writers.formats`, `writers.output`, `writers.stores`.
Imported by `cli`.
"""
