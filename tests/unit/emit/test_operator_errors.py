"""Operators that fail, give what is no row, or are no operators."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from support.operator_logs import given_by, log_of
from wincli.windowing.errors import ConfigError, DataError
from wincli.windowing.in_memory import aggregate
from wincli.windowing.operator import Operator, PaneInfo, load, output_fields


class Odd(Operator):
    """Does what ``does`` says at the second row."""

    output: ClassVar = {"n": int, "t": "timestamp[s]", "text": str}
    does: ClassVar[Any] = None

    def insert(self, row: Mapping[str, Any]) -> Any:
        return self.does() if row["id"] == 1 else None


class OddPane(Odd):
    def insert(self, row: Mapping[str, Any]) -> Any:
        return None

    def trigger(self, rows: Sequence[Mapping[str, Any]], pane: PaneInfo) -> Any:
        return self.does() if pane.window == 1 else None


def raising() -> Iterator[dict[str, Any]]:
    yield {"n": 1}
    raise ValueError("no\nway")


MOMENT = dt.datetime(2026, 1, 1, 0, 0, 0, 5)


@pytest.mark.parametrize(
    ("does", "words"),
    [
        (raising, "failed {}: ValueError: no"),
        (lambda: 3, "failed {}: TypeError: 'int' object is not iterable"),
        (lambda: {"n": 1}, "gave 'n' {}, which is no row; yield dicts, or return a list of them"),
        (lambda: [{"m": 1}], "gave a column 'm' {} that %s.output does not name; it names n, t, text"),
        (lambda: [{"n": 1}, {"n": "one"}], "gave n='one' {}, not int64"),
        (lambda: [{"n": 1.5}], "gave n=1.5 {}, not int64"),
        (lambda: [{"n": True}], "gave n=True {}, not int64"),
        (lambda: [{"n": 2**63}], "gave n=9223372036854775808 {}, not int64"),
        (lambda: [{"text": 1}], "gave text=1 {}, not string"),
        (lambda: [{"t": MOMENT}], "gave t=datetime.datetime(2026, 1, 1, 0, 0, 0, 5) {}, not timestamp[s]"),
        (lambda: [{"t": 1.5}], "gave t=1.5 {}, not timestamp[s]"),
    ],
)
@pytest.mark.parametrize(("name", "where"), [("Odd.insert", "at row 1"), ("OddPane.trigger", "in window 1")])
def test_failure_of_an_operator_names_the_method_and_the_row_or_window(
    does: Any, words: str, name: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = name.partition(".")[0]
    monkeypatch.setattr(Odd, "does", staticmethod(does))
    log = log_of(a=[1, 2], k=["x", "x"], key=("k",))
    with pytest.raises(DataError) as error:
        given_by(log, "count(1)", operator=f"{__name__}:{kind}")
    told = words.replace("%s", kind).format(f"{where} of key k='x'")
    method = name if told.startswith(("failed", "gave a column", "gave 'n'")) else kind
    assert str(error.value) == f"{method} {told}"


def test_values_that_fit_the_output_types_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    fitting = [{"n": 2.0, "t": MOMENT.replace(microsecond=0)}, {"n": np.int64(2), "t": 7}, {}, {"text": None}]
    monkeypatch.setattr(Odd, "does", staticmethod(lambda: fitting))
    got = given_by(log_of(a=[1, 2]), "count(5)", operator=f"{__name__}:Odd", plain=True)
    assert got["n"].to_pylist() == [2, 2, None, None]
    assert got["t"].to_pylist() == [MOMENT.replace(microsecond=0), dt.datetime(1970, 1, 1, 0, 0, 7), None, None]
    assert got["window"].to_pylist() == [None] * 4


class Needy(Operator):
    output: ClassVar = {"n": int}

    def __init__(self, limit: int) -> None:
        self.limit = limit


class Mute(Operator):
    pass


class Torn(Operator):
    output: ClassVar = {"n": "number"}


class Numbered(Operator):
    output: ClassVar = {1: "int64"}


class Rows(Operator):
    output: ClassVar = ["n"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere_at_all:X", "--operator nowhere_at_all:X: cannot import module 'nowhere_at_all': ModuleNotFoundError"),
        (":X", "--operator ':X' is no class; say MODULE:CLASS"),
        (__name__, "--operator {name!r} is no class; say MODULE:CLASS"),
        (f"{__name__}:Lost", "has no class 'Lost'"),
        ("support.operator_logs:log_of", "has no class 'log_of'"),
        ("support.operator_logs:Log", "Log is no operator; derive it from wincli.Operator"),
        (f"{__name__}:Mute", 'operator Mute does not say what it writes; say output = {{"NAME": "TYPE", ...}}'),
        (f"{__name__}:Rows", "operator Rows does not say what it writes"),
        (f"{__name__}:Torn", "operator Torn: column 'n' is of type 'number', which is none; say \"int64\""),
        (f"{__name__}:Numbered", "operator Numbered writes a column 1, and names are texts"),
    ],
)
def test_class_that_is_no_operator_is_refused(name: str, words: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(name)
    assert words.format(name=__name__) in str(error.value)


def test_operators_are_made_without_arguments() -> None:
    with pytest.raises(ConfigError, match=r"^Needy\(\) failed: TypeError: .*'limit'; an operator is made without"):
        given_by(log_of(a=[1]), "count(1)", operator=f"{__name__}:Needy")


class Parting(Odd):
    def insert(self, row: Mapping[str, Any]) -> Any:
        return None

    def partition_evicted(self, rows: Sequence[Mapping[str, Any]]) -> Any:
        return self.does()


def test_an_evicted_key_is_named() -> None:
    log = pa.table({"k": ["x", "y"], "a": [1, 2]})
    Parting.does = staticmethod(raising)
    with pytest.raises(DataError) as caught:
        aggregate(log, "count(2), partitioned, partitionCount(1)", key="k", operator=f"{__name__}:Parting")
    assert str(caught.value) == "Parting.partition_evicted failed at the eviction of key k='x': ValueError: no"


def test_types_of_output() -> None:
    class Typed(Operator):
        output: ClassVar = {"a": int, "b": float, "c": str, "d": bool, "e": "timestamp[us]", "f": pa.list_(pa.int8())}

    kinds = [pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.timestamp("us"), pa.list_(pa.int8())]
    assert output_fields(Typed) == [pa.field(name, kind) for name, kind in zip("abcdef", kinds, strict=True)]
