"""What a run is asked to do (`job`), its defaults, and the settings Spark is started with (`spark`)."""
