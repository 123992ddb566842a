"""Writers of results and states: one file per format, one moment at which a result is there or not.

`writers.output.output.open_output` and `writers.state.state.open_state` are the ways in.
"""
