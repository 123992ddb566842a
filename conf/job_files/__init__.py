"""Job files: YAML to a job with the line of every mistake, the layers of settings, and the JSON Schema."""
