"""Inputs: paths and options become a `Source` that reads rows, arrival positions and rejects."""
