"""Record bounds: where the records of CSV and JSON Lines begin and end in the bytes of a file."""
