"""One function for each aggregate: inputs to one value for each pane. `aggregates.table` lists them."""
