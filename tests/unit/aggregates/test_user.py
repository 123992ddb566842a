"""User functions as aggregates: how they are found, what they get, what they give, and how they fail."""

from __future__ import annotations

import datetime as dt
import decimal
import pickle
import textwrap
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from wincli.windowing.aggregates.inputs import PaneFailed
from wincli.windowing.aggregates.table import bind, compute, in_two_phases, is_mergeable, split, warm
from wincli.windowing.errors import ConfigError
from wincli.windowing.language.spec import AggregateCall, Column
from wincli.windowing.rows.membership import Ranges

MODULE = """
    from __future__ import annotations
    import datetime as dt
    import decimal
    import numpy as np
    import pyarrow as pa

    def spread(x): return x.max() - x.min()
    def size(x) -> int: return len(x)
    def kind_of(x) -> str: return f"{type(x).__name__} {getattr(x, 'dtype', None)}"
    def pair(x, y) -> str: return f"{x.tolist()} {y.to_pylist()}"
    def literals(x, whole, part, text) -> str: return repr((whole, part, text))
    def some(x) -> float | None: return float(x[0]) if x[0] > 1 else None
    def all_true(x) -> bool: return bool(x.all())
    def moment(x) -> dt.datetime: return dt.datetime(2026, 1, int(x[0]))
    def day(x) -> dt.date: return dt.date(2026, 1, int(x[0]))
    def money(x) -> decimal.Decimal: return decimal.Decimal("0.10") * int(x[0])
    def narrow(x) -> np.float32: return np.float32(x[0])
    def edges(x): return [x[0], x[-1]]
    edges.pyarrow_type = pa.list_(pa.float64())
    def spoils(x) -> int: x[0] = 7; return 0
    def quits(x): raise ValueError
    def lies(x) -> int: return "many" if len(x) > 1 else 1
    def odd(x) -> object: return x
    def lost(x) -> Nowhere: return x
    number = 3

    def total(x) -> int: return int(x.sum()) if len(x) > 1 else None
    total.merge = lambda states: sum(states)
    def above(x, limit) -> int: return int((x > limit).sum())
    above.merge = lambda counts, limit: counts.sum()
    def mean(x): return [float(x.sum()), len(x)]
    mean.pyarrow_type = pa.list_(pa.float64())
    mean.merge = lambda states: np.array(states.to_pylist()).sum(axis=0).tolist()
    def quotient(state, by=1) -> float | None: return state[0] / state[1] / by if state[1] > 1 else None
    mean.finish = quotient
    def in_words(x) -> str: return " ".join(map(str, x))
    in_words.merge = lambda states: " ".join(states.to_pylist())
    in_words.pyarrow_type = pa.dictionary(pa.int32(), pa.string())

    def unmerged(x): return x[0]
    unmerged.merge = 3
    def unfinished(x): return x[0]
    unfinished.finish = quotient
    def no_finish(x): return x[0]
    no_finish.merge, no_finish.finish = max, "x"
    def narrow_merge(x, limit): return x[0]
    narrow_merge.merge = lambda states: 0
    def wide_finish(x): return x[0]
    wide_finish.merge, wide_finish.finish = max, lambda state, by: state
    def typeless(x): return x[0]
    def thing(state) -> object: return state
    typeless.merge, typeless.finish = max, thing
    def bad_merge(x) -> int: return len(x)
    bad_merge.merge = lambda states: states[9]
    def odd_merge(x) -> int: return len(x)
    odd_merge.merge = lambda states: "many"
    def bad_finish(x) -> int: return len(x)
    bad_finish.merge, bad_finish.finish = sum, lambda state: 1 // (state - 2)
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "own_stats.py").write_text(textwrap.dedent(MODULE))
    (tmp_path / "torn_stats.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with monkeypatch.context() as patch:
        patch.delitem(__import__("sys").modules, "own_stats", raising=False)
        yield


ROWS = pa.RecordBatch.from_pydict({"x": pa.array([3, None, 1, 2, 5]), "s": pa.array(["a", "b", None, "d", "e"])})
PANES = Ranges(np.array([0, 3, 4]), np.array([3, 4, 7]), np.array([0, 3, 4]), True, np.array([0, 1, 2, 1, 2, 3, 4]))
"""
    row     0    1    2    3    4
    x       3    -    1    2    5
    panes   [-------------)
                 [---)
                      [-------------)
"""


def run(function: str, *arguments: Column | Fraction | str, rows: pa.RecordBatch = ROWS) -> pa.Array:
    call = AggregateCall("out", f"own_stats:{function}", arguments or (Column("x"),))
    bound = pickle.loads(pickle.dumps(bind(call, rows.schema)))
    result = compute(bound, rows, PANES)
    assert result.type == bound.type
    return result


@pytest.mark.parametrize(
    ("values", "seen"),
    [
        (pa.array([1, 2, 3, 4, 5], pa.int16()), "ndarray int16"),
        (pa.array([1.0, None, 3.0, 4.0, 5.0], pa.float32()), "ndarray float32"),
        (pa.array([True, None, False, True, True]), "ndarray bool"),
        (pa.array(["a"] * 5), "StringArray None"),
        (pa.array(["a"] * 5).dictionary_encode(), "StringArray None"),
        (pa.array([dt.date(2026, 1, 1)] * 5), "Date32Array None"),
    ],
    ids=lambda v: str(getattr(v, "type", v)),
)
def test_gets_numpy_for_numbers_and_arrow_for_the_rest(values: pa.Array, seen: str) -> None:
    assert run("kind_of", rows=pa.RecordBatch.from_arrays([values], names=["x"]))[0].as_py() == seen


X = Column("x")
TOLD = "(3, 0.25, 't')"


@pytest.mark.parametrize(
    ("function", "arguments", "dtype", "values"),
    [
        ("spread", (X,), pa.float64(), [2.0, None, 4.0]),  # not called for the pane without values
        ("size", (X,), pa.int64(), [2, None, 3]),
        ("pair", (X, Column("s")), pa.string(), ["[3] ['a']", None, "[2, 5] ['d', 'e']"]),  # rows that have both
        ("literals", (X, Fraction(3), Fraction(1, 4), "t"), pa.string(), [TOLD, None, TOLD]),
        ("some", (X,), pa.float64(), [3.0, None, None]),
        ("all_true", (X,), pa.bool_(), [True, None, True]),
        ("moment", (X,), pa.timestamp("us"), [dt.datetime(2026, 1, 3), None, dt.datetime(2026, 1, 1)]),
        ("day", (X,), pa.date32(), [dt.date(2026, 1, 3), None, dt.date(2026, 1, 1)]),
        ("money", (X,), pa.decimal128(38, 9), [decimal.Decimal("0.3"), None, decimal.Decimal("0.1")]),
        ("narrow", (X,), pa.float32(), [3.0, None, 1.0]),
        ("edges", (X,), pa.list_(pa.float64()), [[3.0, 1.0], None, [1.0, 5.0]]),
        ("mean", (X,), pa.float64(), [2.0, None, 8 / 3]),  # finish makes values of states
    ],
)
def test_gives_values_of_its_type_once_a_pane(
    function: str, arguments: tuple[Any, ...], dtype: pa.DataType, values: list[Any]
) -> None:
    result = run(function, *arguments)
    assert (result.type, result.to_pylist()) == (dtype, values)


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        ("own_stat:f", "x", ": cannot import module own_stat: ModuleNotFoundError: No module named 'own_stat'"),
        ("torn_stats:f", "x", ": cannot import module torn_stats: ZeroDivisionError: division by zero"),
        ("own_stats:f", "x", ": module own_stats has no function f"),
        ("own_stats:number", "x", ": module own_stats has no function number"),
        ("own_stats:pair", "x", "(x): missing a required argument: 'y'"),
        ("own_stats:odd", "x", ": a result of object has no column type; set odd.pyarrow_type"),
        ("own_stats:unmerged", "x", ": its merge is not a function"),
        ("own_stats:unfinished", "x", ": it has finish and no merge; set unfinished.merge"),
        ("own_stats:no_finish", "x", ": its finish is not a function"),
        ("own_stats:wide_finish", "x", "(x): finish: missing a required argument: 'by'"),
        ("own_stats:typeless", "x", ".finish: a result of object has no column type; set typeless.finish.pyarrow_type"),
        ("own_stats:lost", "x", ": its annotations do not read: NameError: name 'Nowhere' is not defined"),
        ("own_stats:narrow_merge", "x1", "(x, 1): merge: too many positional arguments"),
        ("own_stats:size", "", "(): it reads no column; give it at least one"),
    ],
)
def test_refusals(call: str, arguments: str, message: str) -> None:
    given = [X if letter == "x" else Fraction(letter) for letter in arguments]
    with pytest.raises(ConfigError) as caught:
        bind(AggregateCall("out", call, tuple(given)), ROWS.schema)
    assert str(caught.value) == call + message


PARTS = Ranges(np.array([0, 0, 2, 4]), np.array([0, 2, 4, 5]), np.array([0, 0, 2, 4]), True)
"""
    row     0    1    2    3    4
    x       3    -    1    2    5
    parts   [--------)[-------)[--)    and one without rows
"""


def merged(function: str, panes: list[list[int]], *literals: Fraction) -> list[Any]:
    """What comes of panes of parts: ``panes`` are the edges of each among the parts."""
    bound = bind(AggregateCall("out", f"own_stats:{function}", (Column("x"), *literals)), ROWS.schema)
    then = in_two_phases(bound, "part")
    parts = pa.RecordBatch.from_arrays(split(bound, ROWS, PARTS), names=list(then.columns))
    lo, hi = (np.array(edges, np.int64) for edges in zip(*panes, strict=True))
    result = compute(then, parts, Ranges(lo, hi, lo, False))
    assert result.type == bound.type
    return list(result.to_pylist())


def test_states_are_merged_in_order() -> None:
    assert merged("in_words", [[0, 4], [0, 1], [0, 2], [2, 4]]) == ["3 1 2 5", None, "3", "1 2 5"]
    assert merged("above", [[0, 4], [0, 1], [1, 2]], Fraction(2)) == [2, None, 1]


def test_a_state_of_none_counts_for_nothing() -> None:
    """A part has no total of one value: so the merged total is that of the values 1 and 2 alone."""
    assert merged("total", [[0, 4], [0, 2]]) == [3, None]


def test_finish_makes_values_of_merged_states() -> None:
    assert merged("mean", [[0, 4], [0, 2], [0, 1]]) == [2.75, None, None]


def test_only_neighbours_merge_by_a_function() -> None:
    for function, is_merged in (("above", True), ("spread", False)):
        literals = (Fraction(1),) if function == "above" else ()
        bound = bind(AggregateCall("out", f"own_stats:{function}", (Column("x"), *literals)), ROWS.schema)
        assert is_mergeable(bound, ROWS.schema, are_neighbours=True) == is_merged
        assert not is_mergeable(bound, ROWS.schema, are_neighbours=False)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("quits", "(x) failed in pane 0: ValueError"),
        ("lies", "(x) failed in pane 0: it returned 'many', which is not int64"),
        ("spoils", "(x) failed in pane 0: ValueError: assignment destination is read-only"),
        ("bad_merge", "(x): merge failed in pane 1: IndexError"),
        ("odd_merge", "(x): merge failed in pane 1: it returned 'many', which is not int64"),
        ("bad_finish", "(x): finish failed in pane 0: ZeroDivisionError"),
    ],
)
def test_a_failure_names_function_step_and_pane_and_pickles(function: str, message: str) -> None:
    with pytest.raises(PaneFailed) as caught:
        _ = merged(function, [[2, 3], [1, 4]]) if function.startswith(("bad", "odd")) else run(function)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(caught.value).startswith(f"own_stats:{function}{message}")
    assert (again.pane, again.call, str(again)) == (caught.value.pane, caught.value.call, str(caught.value))


def test_is_not_called_to_warm_up() -> None:
    warm([bind(AggregateCall("out", "own_stats:quits", (X,)), ROWS.schema)], ROWS.schema)
