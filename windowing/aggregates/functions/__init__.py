"""One function for each aggregate, over inputs and panes; `aggregates.table` lists them."""
