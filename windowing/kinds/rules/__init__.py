"""Row policies as rules in one loop: what each tells, and where windows begin and end."""
