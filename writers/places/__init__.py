"""The places that results and states are written to: a folder or a store, its files, locks and conditional writes."""
