"""The kinds of window: all that depends on the type of a spec, behind one contract that never sees the plan."""
