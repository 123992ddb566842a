"""Compile every kernel a run needs, on the driver, before workers start: they then load them from the cache."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windowing.engine.exchange import Work
from windowing.marks import no_marks
from windowing.scan import scan
from windowing.sequence import build, merge
from windowing.spec import needs_clock


def warm(work: Work) -> None:
    """Run the job's own code on three rows of the input's types.

    A few milliseconds when the kernels are in numba's cache, seconds the first time. User functions are left out:
    they are not called on data that is not the user's.
    """
    plan = work.plan
    schema = work.source.schema
    rows = pa.RecordBatch.from_arrays([_three(schema.field(name).type) for name in plan.columns], names=plan.columns)
    sequences = build(rows, np.arange(3), plan.key, plan.sort, plan.values)
    merged = merge([sequences, sequences])
    scan(plan, merged, no_marks(merged.rows, plan.sort), 1 if needs_clock(plan.spec) else None)


def _three(dtype: pa.DataType) -> pa.Array:
    """Three values of a type, neither sorted nor all different; nulls where small numbers make no value of it."""
    try:
        return pa.array([1, 0, 1], pa.int32()).cast(dtype)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return pa.nulls(3, dtype)
