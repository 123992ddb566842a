"""The cases of a job as values: rows that are given, and the windows and rejects that are expected of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value as the file has it.

    ``kind``: ``string``, ``integer``, ``number`` or ``boolean``, as YAML reads it; ``csv`` for a cell of CSV.
    ``text``: its text.
    """

    kind: str
    text: str


Value: TypeAlias = "Scalar | list[Any] | dict[str, Any] | None"
"""A value of a row: null, a scalar, or lists and mappings of values."""


@dataclass(frozen=True, slots=True)
class CsvRows:
    """Rows as CSV with a line of names.

    ``text``: the CSV.
    """

    text: str


@dataclass(frozen=True, slots=True)
class ListedRows:
    """Rows as a list of mappings.

    ``rows``: each with its values by column.
    """

    rows: tuple[Mapping[str, Value], ...]


@dataclass(frozen=True, slots=True)
class StoredFile:
    """Rows in a file.

    ``path``: the file, as its name says in which format.
    """

    path: str


Rows: TypeAlias = CsvRows | ListedRows
GivenRows: TypeAlias = CsvRows | ListedRows | StoredFile


@dataclass(frozen=True, slots=True)
class Part:
    """What is given to one run, and what is expected of it: a whole case, or one unit of it.

    ``label``: the unit of a range; None: there is no range.
    ``line``: where it begins in the file, from 1.
    ``given``: the rows by input or file; the name of rows that are given without one is empty.
    ``tables``: the rows of enrich tables, by the name of the enrichment.
    ``expect``: the windows by stage; the name of those of the job itself is empty. None: they are not compared.
    ``rejects``: the rows that are rejected.
    """

    label: str | None
    line: int
    given: Mapping[str, GivenRows]
    tables: Mapping[str, GivenRows] = field(default_factory=dict)
    expect: Mapping[str, Rows] | None = None
    rejects: Rows = ListedRows(())


@dataclass(frozen=True, slots=True)
class Case:
    """One case.

    ``name``: its name.
    ``line``: where it begins in the file, from 1.
    ``parts``: what is given and expected; several where there are units, which run one after the other.
    ``options``: keys that the job has in this case, as flags.
    ``tables``: the rows of enrich tables that all units share, by the name of the enrichment.
    ``error``: a text in the error that the job ends with; None: it does not fail.
    ``is_ordered``: whether windows must come in the order in which they are expected.
    ``checks_expectations``: whether ``expect`` and ``max_rejects`` of the job hold in this case.
    ``tolerance``: how far a float may be from what is expected, as a share of it.
    """

    name: str
    line: int
    parts: tuple[Part, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, GivenRows] = field(default_factory=dict)
    error: str | None = None
    is_ordered: bool = False
    checks_expectations: bool = False
    tolerance: float = 1e-9

    @property
    def is_range(self) -> bool:
        """Whether its parts are units of a range."""
        return self.parts[0].label is not None


@dataclass(frozen=True, slots=True)
class CaseFile:
    """A file of cases.

    ``path``: its path.
    ``cases``: its cases, in the order of the file.
    """

    path: str
    cases: tuple[Case, ...]
