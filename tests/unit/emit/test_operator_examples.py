"""The operators of the examples and of the docs."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pyarrow as pa
import pytest

from support.operator_logs import Log, given_by
from support.places import ROOT


def test_latest_moves() -> None:
    table = pa.table(
        {
            "symbol": ["b", "a", "a", "a", "b", "a", "a"],
            "price": [7.0, 1.0, 1.25, None, 7.5, 1.5, 2.0],
            "clock": [0, 1, 2, 3, 11, 12, 21],
        }
    )
    got = given_by(Log(table, (), ("clock",)), "time(10)", operator="wincli.conf.examples.latest_moves:LatestMoves")
    rows = got.select(["window", "symbol", "price", "moved", "_mark"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (0, "a", 1.25, None, None),
        (0, "b", 7.0, None, "window"),
        (None, None, None, None, "only"),
        (2, "a", 2.0, 0.75, "window"),
    ]


def test_operators_of_the_docs_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block of the page that begins with ``# NAME.py`` is a module, and the tables behind it are what it gives."""
    page = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    modules = re.findall(r"```python\n# (\w+)\.py\n(.*?)```", page, re.DOTALL)
    for name, text in modules:
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    table = pa.table(
        {
            "ts": pa.array([dt.datetime(2026, 1, 1, 9, s // 60, s % 60) for s in (0, 10, 20, 70)], pa.timestamp("us")),
            "user": ["ann", "ann", "ann", "ann"],
            "page": ["/", "/cart", "/", "/"],
        }
    )
    told = re.findall(r"`(\w+:\w+)` with `--window \"([^\"]*)\"` gives\n\n((?:\|.*\n)+)", page)
    assert {name for name, _ in modules} == {name.partition(":")[0] for name, _, _ in told}
    for operator, window, drawn in told:
        got = given_by(Log(table, ("user",), ("ts",)), window, operator=operator, plain=True)
        names, _, *cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in drawn.splitlines()]
        shown = [
            ["" if value is None else str(value) for value in row.values()] for row in got.select(names).to_pylist()
        ]
        assert shown == cells
