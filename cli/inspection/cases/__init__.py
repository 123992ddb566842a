"""Cases of a job: rows that are given, run through the plans of the job, and compared with what is expected."""
