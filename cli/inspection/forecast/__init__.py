"""What a run would do, without Spark or any trace: input, stages, units and time, as text and as JSON."""
