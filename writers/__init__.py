"""Outputs and states: written apart, then visible all at once or not at all.

The ways in are `output.output.open_output` and `state.state.open_state`.
"""
