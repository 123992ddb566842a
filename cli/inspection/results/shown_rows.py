"""The rows that a path leads to: those of a result, of all results of a range, rejects, or open windows of a state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from ....conf.ranges.units import instant_of
from ....readers.files.listed import ListedFile
from ....readers.files.listing import list_files
from ....readers.files.result_folders import read_manifest
from ....readers.files.walk import MANIFEST
from ....windowing.errors import ConfigError, InputError
from ....windowing.expressions.syntax import Expression
from ....windowing.projection.projection import RowExpressions, make_projection, project
from ....windowing.support.suggest import did_you_mean, few
from ....writers.state.layout import is_state
from ...planning.fingerprint import same_job
from .result import ResultFolder, label_of, open_result_folder, rejects_of

UNIT = "unit"
"""The column that is added to the rows of several units."""


class ShownRows(Protocol):
    """Rows that can be shown."""

    @property
    def schema(self) -> pa.Schema:
        """The columns, in their order."""
        ...

    def tables(self, columns: Sequence[str] | None = None, where: Expression | None = None) -> Iterator[pa.Table]:
        """Yield the rows in their order, as `cli.inspection.results.result.StoredRows.tables` does."""
        ...


@dataclass(frozen=True, slots=True)
class RowsOfUnits:
    """The rows of several units, one unit after the other, with the label of the unit in front.

    ``units``: label and rows of each, in order; at least one.
    """

    units: tuple[tuple[str, ShownRows], ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns: the unit, then those of any unit, in the type of the first unit that has them."""
        fields = [pa.field(UNIT, pa.string()), *(field for _, rows in self.units for field in rows.schema)]
        first = {field.name: field for field in reversed(fields)}
        return pa.schema([first[name] for name in dict.fromkeys(field.name for field in fields)])

    def tables(self, columns: Sequence[str] | None = None, where: Expression | None = None) -> Iterator[pa.Table]:
        """Yield the rows in their order. Raises as `cli.inspection.results.result.StoredRows.tables` does."""
        schema = self.schema
        names = schema.names if columns is None else list(columns)
        projection = make_projection(schema, RowExpressions((), where))
        needed = projection.needs(names)
        for label, rows in self.units:
            own = [name for name in needed if name in rows.schema.names and name != UNIT]
            for table in rows.tables(own or rows.schema.names[:1]):  # a table of no column has no rows
                found = project(projection, _completed(table, label, schema, needed), names)
                yield found.rows if found.kept is None else found.rows.filter(pa.array(found.kept))


def _completed(table: pa.Table, label: str, schema: pa.Schema, names: Sequence[str]) -> pa.Table:
    """Return the columns ``names`` of the rows of a unit; those that it lacks are null."""
    own: dict[str, Any] = dict(zip(table.column_names, table.columns, strict=True))
    count = table.num_rows
    own[UNIT] = pa.repeat(pa.scalar(label), count)
    columns = [own[name] if name in own else pa.nulls(count, schema.field(name).type) for name in names]
    whole = pa.table(columns, names=list(names))
    return whole.cast(pa.schema([schema.field(name) for name in names]))


def rows_at(path: str, *, unit: str | None = None, stage: str | None = None, rejects: bool = False) -> ShownRows:
    """Return the rows that ``path`` leads to.

    ``unit``: of which unit of a range or state; None: of all units of a range, and of the newest of a state.
    ``stage``: of which stage of a state. ``rejects``: the rejected rows of a result. Raises `InputError` where there is
    nothing of wincli, `ConfigError` where there is no such unit or stage, or it has no rejects.
    """
    if is_state(path):
        from .open_windows import open_windows  # noqa: PLC0415 - what reads states loads numba

        if rejects:
            raise ConfigError(f"{path} is a state, and rejected rows are in outputs", "name the folder of an output")
        return open_windows(path, unit, stage)
    if stage is not None:
        raise ConfigError(f"--stage: {path} is no state", "leave it out")
    found = results_at(path, unit)
    several = [(label, _rows_of(result, rejects)) for label, result in found]
    there = tuple((label, rows) for label, rows in several if rows is not None)
    if not there:
        raise ConfigError(f"{path} has no rejected rows", "wincli status says how many rows are where")
    return there[0][1] if found[0][0] == "" or unit is not None else RowsOfUnits(there)


def results_at(path: str, unit: str | None) -> list[tuple[str, ResultFolder]]:
    """Return the results at a path with the labels of their units: one without a label, or those of a range.

    Raises `InputError` where there is none, `ConfigError` where no unit has this label.
    """
    manifests = list_files([path], skip_unreadable=True).manifests
    if not manifests:
        raise InputError(f"{path} is no state and no result of wincli", "name the folder of --state, or of an output")
    if manifests[0].below == MANIFEST:
        if unit is not None:
            raise ConfigError(f"--unit: {path} is a single result", "leave it out")
        return [("", open_result_folder(path))]
    base = path.rstrip("/")
    _check_related(path, manifests)
    folders = {label_of(each): f"{base}/{each.below.removesuffix(MANIFEST).rstrip('/')}" for each in manifests}
    if unit is not None and unit not in folders:
        raise ConfigError(f"{path} has no unit {unit!r}", did_you_mean(unit, list(folders)))
    return [(label, open_result_folder(folder)) for label, folder in folders.items() if unit in (None, label)]


def _check_related(path: str, manifests: Sequence[ListedFile]) -> None:
    """Raise `ConfigError` where results are not those of one range: neither of dated units, nor of one job."""
    labels = [label_of(each) for each in manifests]
    if len(set(labels)) == len(labels):
        if all(instant_of(label) for label in labels):
            return
        jobs = [_job_of(each) for each in manifests]
        if all(job is None or same_job(jobs[0] or {}, job) for job in jobs):
            return
    names = [each.below.removesuffix(MANIFEST).rstrip("/") for each in manifests]
    what = f"{path} holds {len(names)} results that do not belong together: {few(names)}"
    raise ConfigError(what, "name one of them, or the folder of one range")


def _job_of(manifest: ListedFile) -> Mapping[str, Any] | None:
    """Return the job of a result; None where its manifest is damaged, which is told when it is opened."""
    try:
        found: Mapping[str, Any] = read_manifest(manifest.place)["job"]
    except (ValueError, KeyError):
        return None
    return found


def _rows_of(result: ResultFolder, rejects: bool) -> ShownRows | None:
    return rejects_of(result) if rejects else result.rows
