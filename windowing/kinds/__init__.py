"""The kinds of window: each a function from a spec and sequences of rows to panes.

`scan.dispatch` calls them; they see `context.WindowContext`, never the plan.
"""
