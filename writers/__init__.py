"""Outputs and states: a run writes them to staging folders, and a commit publishes all of them or none."""
