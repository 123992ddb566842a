"""Options, each declared once, the job model and job files made from them, ranges, and Spark's settings."""
