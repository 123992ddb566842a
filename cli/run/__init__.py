"""From a job to committed results: how a run starts, its stages, ranges of units, late rows, units side by side."""
