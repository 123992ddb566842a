"""Windows over Spark DataFrames by their public API alone: rows are laid out, and tasks scan Arrow batches."""
