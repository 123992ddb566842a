"""Inputs of aggregates as arrays, and states that are combined over panes whatever the order of combination."""
