"""Compiled loops of aggregates. They know arrays and nothing else."""
