"""What every kind of window returns: panes, and which rows each shows."""
