"""Records of units that were never run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wincli.windowing.ports import InputFile
from wincli.writers.state.unit_record import UnitRecord


@dataclass(frozen=True)
class FakeStage:
    name: str
    counts: Mapping[str, Any]
    windows: int


@dataclass(frozen=True)
class FakeRecord:
    """``began``: the state it began from, by value; ``state``: the one it left."""

    label: str
    ordinal: int
    inputs: tuple[InputFile, ...]
    previous: str | None
    began: str
    state: str
    output: str
    stages: Sequence[FakeStage] = ()
    enrich: Mapping[str, tuple[InputFile, ...]] = field(default_factory=dict)
    rows_in, out, held, rejected = UnitRecord.rows_in, UnitRecord.out, UnitRecord.held, UnitRecord.rejected
