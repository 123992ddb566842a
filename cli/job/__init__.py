"""One run of a job: request, plan, stages, commit, summary.

The way in is `pipeline`; `context` holds what all steps share.
"""
