"""What those who operate a run see of it: metrics for Prometheus, and OpenLineage events."""
