"""What shows jobs, results and states before and after a run, what a machine lacks, and what a range would change."""
