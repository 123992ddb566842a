"""The places of results and states, a folder or a store: their files, locks and conditional writes."""
