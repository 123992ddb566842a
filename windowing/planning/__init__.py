"""A window bound to the columns of an input: checked, with its order, and with the schema of its result.

The way in is `plan.make_plan`; a `plan.Plan` is what the scan, the engine and the tasks are given.
"""
