"""Panes, which every kind of window returns, and membership: which rows each pane shows."""
