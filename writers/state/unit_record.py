"""The record of a unit: the input of one incremental run, what it did, and the windows that it left open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ...windowing.columns.row_digest import digest_of_all
from ...windowing.errors import ConfigError, DamagedError
from ...windowing.ports import Counts, InputFile, Part, sum_rejected
from ...windowing.support.checksum import CHECKSUM, read_object, sealed_text, unseal

UNIT_DISTANCE = 10**12
"""The distance between the arrival positions of two units, so that those of one never depend on rows of another."""
FORMAT = 3
"""The format of a record. Format 1 had no checksums, format 2 no digests, which earlier versions do not know."""


@dataclass(frozen=True, slots=True)
class WrittenOutput:
    """An output of a unit.

    ``shown``: the path as the user wrote it.
    ``path``: the absolute path, or the URI of a store.
    """

    shown: str
    path: str


@dataclass(frozen=True, slots=True)
class OpenWindows:
    """The windows of a stage that are open at the end of a unit, and how many keys have one.

    ``oldest``: the first order value in them, as text; None where there is none.
    """

    windows: int
    keys: int
    oldest: str | None


@dataclass(frozen=True, slots=True)
class StageRecord:
    """The record of one stage of a unit.

    ``identity``: what must be equal in a unit that restores this one; plain JSON values.
    ``registers``: the state that the engine keeps beside the tables; plain JSON values.
    ``counts``: the row accounting of the stage; plain JSON values.
    ``windows``: the number of windows that were emitted; of a result the number of its rows, for manifests do not count
        windows.
    ``parts``: the files of its rows and keys in the state, each with the digest of its rows.
    ``open``: the windows that it left open; None without a state.
    """

    name: str
    identity: Mapping[str, Any]
    registers: Mapping[str, Any]
    counts: Mapping[str, Any]
    windows: int
    parts: tuple[Part, ...]
    open: OpenWindows | None

    @property
    def digest(self) -> str | None:
        """The digest of the tables of its window state, however these are divided; None in records of format 2."""
        return digest_of_all(part.digest for part in self.parts)


@dataclass(frozen=True, slots=True)
class BorrowedRows:
    """Late rows of a unit that an earlier unit has read, each at its place in the order.

    ``label``: the unit whose input files have the rows.
    """

    label: str
    files: tuple[InputFile, ...]


@dataclass(frozen=True, slots=True)
class UnitRecord:
    """A finished unit, as its state has recorded it, or its result (`of_result`), which then has no state.

    Its JSON has a checksum of itself, and its parts have the checksums of their files.

    ``label``: the name of the unit and of its folder in the state.
    ``ordinal``: the number that orders units.
    ``start``: the inclusive start of the range it covers, ISO 8601; None for a plain run.
    ``end``: the exclusive end of that range, ISO 8601; None for a plain run.
    ``previous``: the label of the unit whose window state it restored, or None.
    ``stages``: the record of each stage, in the order of the job.
    ``run``: the unique id of its run, which is also in the manifests of its outputs.
    ``started``, ``finished``: of the run, ISO 8601.
    ``seconds``: the time that each phase took.
    ``versions``: of wincli, of Python and of packages.
    ``state``: the id of its window state: the ``run`` that first left this state; a later run that leaves one that
        decides the same keeps the id.
    ``began``: the ``state`` of the unit that it restored, None for a start without one.
    ``lent``: the labels of the units that have read its late rows; this unit has read the rest of its ``inputs``.
    ``borrowed``: the late rows of later units that this unit has read.
    ``enrich``: the files of each enrich table, by the name of the enrichment.
    ``expectations``: what the job demanded of the unit, and whether it was so; plain JSON values.
    ``reruns``: how often it has been run again.
    ``numbers``: the id of the window numbers that it left, where these are others than ``state`` says.
    ``began_numbers``: that of the unit that it restored, where it is not ``began``.
    ``bases``: the folders below which names of folders gave columns of its input, where these are not its paths.
    ``digests``: of the rows of each of its ``outputs``, None where they have none; empty in records of format 2.
    """

    label: str
    ordinal: int
    start: str | None
    end: str | None
    previous: str | None
    inputs: tuple[InputFile, ...]
    outputs: tuple[WrittenOutput, ...]
    stages: tuple[StageRecord, ...]
    run: str
    started: str
    finished: str
    seconds: Mapping[str, float]
    versions: Mapping[str, str | None]
    state: str
    began: str | None
    job: Mapping[str, Any]
    lent: tuple[str, ...] = ()
    borrowed: tuple[BorrowedRows, ...] = ()
    enrich: Mapping[str, tuple[InputFile, ...]] = field(default_factory=dict)
    expectations: tuple[Mapping[str, Any], ...] = ()
    reruns: int = 0
    numbers: str | None = None
    began_numbers: str | None = None
    bases: tuple[str, ...] = ()
    digests: tuple[str | None, ...] = ()

    @classmethod
    def of_result(cls, label: str, ordinal: int, manifest: Mapping[str, Any]) -> UnitRecord:
        """Return what the manifest of a result says of its unit.

        It says nothing of a state, of outputs, and of when the run finished. Raises `KeyError`, `TypeError`,
        `AttributeError` or `IndexError` for what is no manifest.
        """
        before = manifest.get("stages", ())
        named = manifest["job"].get("stages")
        last = named[len(before)]["name"] if named else "window"
        counts = [*((stage["name"], stage["counts"]) for stage in before), (last, manifest["counts"])]
        stages = tuple(StageRecord(name, {}, {}, told, manifest["rows_out"], (), None) for name, told in counts)
        tables = manifest.get("enrich") or {}  # a result of an older version has none
        return cls(
            label, ordinal, None, None, None, input_files(manifest["inputs"]), (), stages, str(manifest.get("run", "")),
            "", "", {}, {}, "", None, manifest["job"],
            enrich={name: input_files(files) for name, files in tables.items()},
            expectations=tuple(manifest.get("expectations", ())),
        )  # fmt: skip

    @property
    def rows_in(self) -> int:
        return int(self.stages[0].counts["rows_in"])

    @property
    def out(self) -> int:
        """The windows that came out of its last stage, or the rows of a result."""
        return self.stages[-1].windows

    @property
    def held(self) -> int:
        return sum(stage.counts["held"] for stage in self.stages)

    @property
    def rejected(self) -> dict[str, int]:
        """The rejected rows of all stages by reason, sorted."""
        return sum_rejected([stage.counts["rejected"] for stage in self.stages])

    @property
    def numbering(self) -> str:
        """The id of the window numbers that it left: the ``run`` that first left these numbers."""
        return self.numbers or self.state

    def counts_on(self, before: UnitRecord) -> bool:
        """Whether the window numbers of this unit go on from those that the unit before it has left by now."""
        return (self.began_numbers or self.began) == before.numbering

    def to_json(self) -> str:
        """Return the record as indented JSON, its keys always in the same order."""
        fields = asdict(self)
        for key in _MAYBE:
            if not fields[key]:
                del fields[key]
        for stage, own in zip(fields["stages"], self.stages, strict=True):
            stage["digest"] = own.digest
        return sealed_text({"format": FORMAT, **fields})

    def parts_of(self, stage: str) -> tuple[Part, ...]:
        """Return the parts of a stage in the state."""
        return next(one.parts for one in self.stages if one.name == stage)

    @classmethod
    def from_json(cls, text: str | bytes, shown: str) -> UnitRecord:
        """Read the text that `to_json` has written; ``shown``: the file, for messages.

        Raises `ConfigError` for the record of a newer wincli, `DamagedError` for a text that is no record, or not the
        one that was written. A record of format 1 has no checksum, so only missing keys and wrong types are found.
        """
        try:
            value = read_object(text)
            is_sealed, value = CHECKSUM in value, unseal(value)
            format = value.pop("format")
            if format in range(1, FORMAT + 1):
                return _record(value, format, is_sealed)
            if not isinstance(format, int):
                raise TypeError("its format is no number")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            what = f"{shown} is damaged: it is not the record that was written there"
            raise DamagedError(what, _RESTORE) from error
        raise newer(shown, format, FORMAT)


_MAYBE = ("expectations", "reruns", "numbers", "began_numbers", "bases", "digests")
"""Keys that a record without any of them lacks, as those of earlier versions do."""


def newer(shown: str, format: object, known: int) -> ConfigError:
    """Return the error for a file of a format that this version does not know."""
    what = f"{shown} was written by a newer wincli: it has format {format}, and this one knows {known}"
    return ConfigError(what, "use that version")


_RESTORE = (
    "restore it; a unit of a range, or the last plain run, may be deleted, folder and all, "
    "and run again with --mode overwrite"
)


def _record(value: dict[str, Any], format: int, is_sealed: bool) -> UnitRecord:
    """Return a record from its JSON value.

    Raises `ValueError`, `KeyError`, `TypeError` or `AttributeError` where something is missing or has a wrong type.
    """
    if is_sealed != (format > 1):
        raise ValueError("its checksum is gone")
    tables = {name: input_files(files) for name, files in value.pop("enrich", {}).items()}
    stages = []
    for stage in value.pop("stages"):
        stage.pop("digest", None)  # the sum of those of its parts
        own = tuple(Part(**part) for part in stage.pop("parts"))
        stages.append(StageRecord(**stage | {"parts": own, "open": OpenWindows(**stage["open"])}))
    loans = (BorrowedRows(loan["label"], input_files(loan["files"])) for loan in value.pop("borrowed", ()))
    record = UnitRecord(
        inputs=input_files(value.pop("inputs")),
        outputs=tuple(WrittenOutput(**output) for output in value.pop("outputs")),
        stages=tuple(stages),
        lent=tuple(value.pop("lent", ())),
        borrowed=tuple(loans),
        enrich=tables,
        expectations=tuple(value.pop("expectations", ())),
        bases=tuple(value.pop("bases", ())),
        digests=tuple(value.pop("digests", ())),
        **value,
    )
    parts = [part for stage in record.stages for part in stage.parts]
    texts = (record.label, record.run, record.state, *(part.name for part in parts))
    numbers = (record.ordinal, record.reruns, *(part.rows for part in parts), *(part.nbytes for part in parts))
    maybe = (record.previous, record.began, record.start, record.end, record.numbers, record.began_numbers)
    is_right = all(isinstance(text, str) for text in texts) and all(type(n) is int for n in numbers)
    if not is_right or not all(text is None or isinstance(text, str) for text in maybe):
        raise TypeError("a value is of another type")
    if not is_sealed:
        _check_keys(record)
    return record


_LATER = {"panes_hidden", "duplicates"}
"""Counts that records of format 1 do not have."""


def _check_keys(record: UnitRecord) -> None:
    for stage in record.stages:
        counts = Counts(**stage.counts)
        numbers = (counts.rows_in, counts.windowed, counts.filtered, counts.dropped_at_end, counts.held, counts.carried)
        if not all(type(n) is int for n in (*numbers, *counts.rejected.values(), stage.windows)):
            raise TypeError("a count is no number")
        names = asdict(counts).keys() - _LATER
        if not {"clock", "watermark"} <= stage.registers.keys() or not names <= stage.counts.keys():
            raise KeyError("a register or a count")
    if len(record.job["stages"]) != len(record.stages) or not {"input", "output"} <= record.job.keys():
        raise KeyError("a part of the job")


def input_files(value: Iterable[Mapping[str, Any]]) -> tuple[InputFile, ...]:
    """Return the input files that a record or a manifest lists. Raises `TypeError` for other keys."""
    return tuple(InputFile(**file) for file in value)
