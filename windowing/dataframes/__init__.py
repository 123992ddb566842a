"""Windows over Spark DataFrames."""
