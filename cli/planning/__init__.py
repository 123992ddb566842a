"""What a run needs before it computes: the request, outputs and input opened, stages planned."""
