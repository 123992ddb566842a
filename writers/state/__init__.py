"""States: their layout, the records of units, the staging of a unit, the journal of a commit, and its recovery.

The way in is `state.open_state`.
"""
