"""The encoder of each output format, and of rejected rows."""
