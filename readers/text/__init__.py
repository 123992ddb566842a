"""Where records begin and end in the bytes of a text file."""
