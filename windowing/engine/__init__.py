"""The Spark pipeline: sample, exchange, scan. Readers and writers are handed in (`ports`)."""
