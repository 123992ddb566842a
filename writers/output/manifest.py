"""The manifest of a result: the job, its inputs, and the counts and parts of its output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from ...windowing.columns.row_digest import digest_of_all
from ...windowing.ports import Counts, InputFile, Part, ResultPart, StreamInfo
from ...windowing.support.checksum import CHECKSUM, TAIL
from ..commit.version_table import STATISTICS
from ..formats.encoder import plain
from .versions import versions

FORMAT = 1
"""Goes up when a key of the manifest changes its meaning."""


def build_manifest(
    *,
    job: Mapping[str, Any],
    spec: str,
    schema: pa.Schema,
    order: Sequence[str],
    order_why: str,
    inputs: Sequence[InputFile],
    counts: Counts,
    parts: Sequence[Part],
    rejects: Sequence[Part],
    seconds: Mapping[str, float],
    stream: StreamInfo | None,
    stages: Sequence[Mapping[str, Any]] = (),
    skipped: int = 0,
    cut_at: int | None = None,
    tables: Mapping[str, Sequence[InputFile]] | None = None,
    expectations: Sequence[Mapping[str, Any]] = (),
    ahead: Mapping[str, Any] | None = None,
    windows_late: int | None = None,
) -> dict[str, Any]:
    """Return the manifest as a value for `json.dumps`, its keys always in the same order.

    ``job``: the job as run, of plain JSON values. ``spec``: the canonical text of the window. ``order``: the order
    columns, empty for arrival order; ``order_why``: why these. ``counts``: the row accounting of the stage.
    ``seconds``: by phase. ``stream``: None for a result without stream columns. ``inputs``: the files of the job;
    ``skipped``: how many unreadable paths were skipped; ``cut_at``: how many rows were read, where there are more; else
    None. ``tables``: the files of each table beside the input. ``stages``: the stages between the inputs and
    this result, as `stage_entry` returns them. ``expectations``: what the job demanded, and whether it was so.
    ``ahead``: how many rows were ahead of their time, and the first of them; None where nothing looked for them.
    ``windows_late``: how many windows a table has brought too late; None where windows are of no table.
    """
    told = None if stream is None else {"order": [*stream.order], "at": [*stream.at], "own": [*stream.own]}
    return {
        "format": FORMAT,
        "spec": spec,
        "job": dict(job),
        "schema": [{"name": field.name, "type": str(field.type)} for field in plain(schema)],
        "order": _order(order, order_why),
        "stream": told,
        "inputs": [asdict(file) for file in inputs],
        "inputs_skipped": skipped,
        "inputs_cut_at": cut_at,
        "enrich": {name: [asdict(file) for file in files] for name, files in (tables or {}).items()},
        "stages": [dict(stage) for stage in stages],
        "counts": counts.recorded(),
        **({} if ahead is None else {"ahead": dict(ahead)}),
        "expectations": [dict(each) for each in expectations],
        **({} if windows_late is None else {"windows_late": windows_late}),
        "rows_out": sum(part.rows for part in parts),
        "digest": digest_of_all(part.digest for part in parts),
        "parts": [_part(part) for part in parts],
        "rejects": [_part(part) for part in rejects],
        "seconds": {phase: round(float(spent), 3) for phase, spent in seconds.items()},
        "versions": versions(),
    }


def stage_entry(
    *, name: str, spec: str, order: Sequence[str], order_why: str, counts: Counts, output: str | None
) -> dict[str, Any]:
    """Return the entry of a stage in the manifests of later stages; ``output``: the stage's own output, or None."""
    return {
        "name": name,
        "spec": spec,
        "order": _order(order, order_why),
        "counts": counts.recorded(),
        "output": output,
    }


def _order(columns: Sequence[str], why: str) -> dict[str, Any]:
    return {"columns": list(columns), "why": why}


def _part(part: Part) -> dict[str, Any]:
    described: dict[str, Any] = {"name": part.name, "rows": part.rows, "bytes": part.nbytes}
    if part.checksum is not None:
        described[CHECKSUM] = part.checksum
    if isinstance(part, ResultPart) and part.tail is not None:
        described[TAIL] = part.tail
    if part.digest is not None:
        described["digest"] = part.digest
    if isinstance(part, ResultPart) and part.statistics is not None:
        described[STATISTICS] = part.statistics
    return described
