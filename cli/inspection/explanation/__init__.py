"""Why a window of a result is as it is, found by computing the windows of its key once more."""
