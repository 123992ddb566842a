"""What every task of a run is told, and what it leaves: the context, sizes of chunks and slices, snapshots, rejects."""
