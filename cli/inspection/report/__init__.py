"""A report on a result, a range or a state: its measures as values, and one page of these."""
