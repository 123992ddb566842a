"""Where states are kept: the contract, and one module for each kind of place.

The entry point is `places.storage_of`.

Imports `windowing`, `writers.commit`, `writers.folders`, `writers.state.layout`, `writers.state.stage_files`,
`writers.state.stage_folder`, `writers.state.unit_record`, `writers.stores`. Imported by `cli`, `writers.state.journal`,
`writers.state.journal_rebuild`, `writers.state.recovery`, `writers.state.staging`, `writers.state.state`.
"""
