"""Parquet and ORC as input: the same rows however groups and stripes make splits, plain types, and damage."""

from __future__ import annotations

import datetime as dt
import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pyarrow import fs, orc

from support.readers import column, put, read_all, source
from support.strategies import examples
from wincli.readers.files.file import Located
from wincli.readers.files.walk import ListedFile
from wincli.readers.formats.columnar import Footer, plan_footers
from wincli.readers.formats.orc import column_names
from wincli.readers.formats.split_rows import ReadRequest
from wincli.readers.source import FileSource
from wincli.readers.values.types import ColumnType
from wincli.windowing.errors import InputError
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.rows.projection import Project, RowExpressions, make_projection, stored_condition
from wincli.writers.output.sink import SCRATCH, FileSink

LISTS = pa.list_(pa.int64())
LAW = examples(60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
FORMS = pytest.mark.parametrize("form", ["parquet", "orc"])


def in_groups(path: Path, *groups: pa.Table, **options: Any) -> Path:
    """Write a file with one row group, or one stripe, for each table; ORC ends one only behind some text."""
    if path.suffix == ".orc":
        with orc.ORCWriter(str(path), **{"stripe_size": 1, **options}) as writer:
            for table in groups:
                writer.write(table)
    else:
        with pq.ParquetWriter(path, groups[0].schema, **options) as writer:
            for table in groups:
                writer.write_table(table)
    return path


def numbers(*sizes: int) -> list[pa.Table]:
    """Tables that count their rows on from one to the next, with text that fills a stripe."""
    ends = [sum(sizes[: at + 1]) for at in range(len(sizes))]
    return [
        pa.table({"a": range(end - size, end), "fill": [f"{end}"] * size})
        for size, end in zip(sizes, ends, strict=True)
    ]


@FORMS
def test_groups_next_to_each_other_go_together_up_to_the_split_size(tmp_path: Path, form: str) -> None:
    path = in_groups(tmp_path / f"x.{form}", *numbers(2, 2, 2, 2, 2))
    opened = source(path)
    assert [(s.base, s.rows, s.place, s.ends_file) for s in opened.splits] == [(0, 10, (0, 0, 1, 2, 3, 4), True)]
    size = opened.splits[0].nbytes // 5
    opened = source(path, split_bytes=2 * size)
    assert [(s.base, s.rows, s.place) for s in opened.splits] == [(0, 4, (0, 0, 1)), (4, 4, (4, 2, 3)), (8, 2, (8, 4))]
    assert [s.ends_file for s in opened.splits] == [False, False, True]
    every = read_all(opened, ["a"])
    assert every.rows == [{"a": i} for i in range(10)]
    assert every.pos == list(range(10))
    assert every.lines == list(range(1, 11))


@st.composite
def files(draw: st.DrawFn) -> list[list[pa.Table]]:
    """The groups of some files, with texts that repeat, lists and nulls."""
    made = []
    for _ in range(draw(st.integers(1, 3))):
        groups = []
        for size in draw(st.lists(st.integers(0, 5), max_size=4)):
            words = draw(st.lists(st.sampled_from(["x", "yy", "", None]), min_size=size, max_size=size))
            values = draw(st.lists(st.none() | st.integers(-9, 9), min_size=size, max_size=size))
            lists = [None if value is None else [value] * (value % 3) for value in values]
            columns = {"word": pa.array(words, pa.string()), "n": pa.array(values, pa.int64())}
            fill = pa.array(map(str, range(size)), pa.string())
            groups.append(pa.table({**columns, "many": pa.array(lists, LISTS), "fill": fill}))
        made.append(groups)
    return made


EMPTY = pa.schema([("word", pa.string()), ("n", pa.int64()), ("many", LISTS), ("fill", pa.string())]).empty_table()


@FORMS
@LAW
@given(made=files(), split_bytes=st.integers(1, 400))
def test_files_read_the_same_however_they_are_cut(
    tmp_path_factory: pytest.TempPathFactory, form: str, made: list[list[pa.Table]], split_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp(form)
    for number, groups in enumerate(made):
        in_groups(folder / f"{number}.{form}", EMPTY, *groups)
    wanted = [row for groups in made for table in groups for row in table.to_pylist()]
    opened = source(folder, split_bytes=split_bytes)
    every = read_all(opened)
    assert every.rows == wanted
    assert every.pos == list(range(len(wanted)))
    own = [number for groups in made for number in range(1, 1 + sum(map(len, groups)))]
    assert every.lines == own
    parts = [part for split in opened.splits for part in opened.parts_of(split)]
    batches = [opened.read(part, ["n", "word"], ["word"]) for part in parts]
    assert [pos for batch in batches for pos in batch.pos.tolist()] == every.pos
    assert [
        line for p, batch in zip(parts, batches, strict=True) for line in opened.line_numbers(p, batch.pos).tolist()
    ] == own
    assert sum(part.ends_file for part in parts) == len(made)
    assert [value for batch in batches for value in batch.rows["n"].to_pylist()] == [row["n"] for row in wanted]
    texts = [value for batch in batches for value in batch.rows["word"].cast(pa.string()).to_pylist()]
    assert texts == [row["word"] for row in wanted]
    assert all(batch.rows.schema.field("word").type == pa.dictionary(pa.int32(), pa.string()) for batch in batches)


@FORMS
def test_no_other_column_is_taken_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    opened = source(put(tmp_path / f"x.{form}", {"a": [1], "a.b": [2], "c": [3]}))
    asked: list[Any] = []
    owner, name = (pq.ParquetFile, "read_row_groups") if form == "parquet" else (orc.ORCFile, "read_stripe")
    read = getattr(owner, name)

    def spy(self: Any, group: Any, columns: Any = None, **options: Any) -> Any:
        asked.append(columns)
        return read(self, group, columns=columns, **options)

    monkeypatch.setattr(owner, name, spy)
    assert opened.read(opened.splits[0], ["c", "a"]).rows.to_pydict() == {"c": [3], "a": [1]}
    assert asked == [["c", "a"]]
    assert opened.read(opened.splits[0], []).pos.tolist() == [0]
    assert len(asked) == 1


@FORMS
def test_a_truncated_file_and_one_that_breaks_later_are_named(tmp_path: Path, form: str) -> None:
    checked = {"write_page_checksum": True} if form == "parquet" else {}
    path = put(tmp_path / f"x.{form}", {"a": [str(n * n) for n in range(10_000)]}, compression="zstd", **checked)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=rf"x\.{form} cannot be read as \w+: "):
        source(path)
    path.write_bytes(whole[:100] + bytes(2000) + whole[2100:])
    opened = source(path)
    with pytest.raises(InputError, match=rf"x\.{form} cannot be read as \w+: "):
        read_all(opened)


# Parquet


def test_types_come_plain(tmp_path: Path) -> None:
    texts = pa.array(["x", "y", "x"])
    table = {
        "d": texts.dictionary_encode(),
        "l": texts.cast(pa.large_string()),
        "v": texts.cast(pa.string_view()),
        "p": pa.array([1, None, 2], pa.int64()),
    }
    opened = source(put(tmp_path / "x.parquet", table))
    assert opened.schema.types == [pa.string()] * 3 + [pa.int64()]
    assert [row["d"] + row["l"] + row["v"] for row in read_all(opened).rows] == ["xxx", "yyy", "xxx"]
    assert opened.explain_type("d") is None


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.binary()])
def test_columns_of_other_types_are_dictionary_encoded_on_request(tmp_path: Path, kind: pa.DataType) -> None:
    values = pa.array(["x", None, "y", "x"]).cast(kind)
    opened = source(put(tmp_path / "x.parquet", {"a": values, "n": [1, 2, 3, 4]}, row_group_size=2))
    rows = opened.read(opened.splits[0], ["n", "a"], dictionary=["a", "n"]).rows
    plain = pa.binary() if kind == pa.binary() else pa.string()
    assert rows.schema.types == [pa.int64(), pa.dictionary(pa.int32(), plain)]
    assert rows["a"].cast(plain).to_pylist() == values.cast(plain).to_pylist()
    assert len({str(chunk.dictionary) for chunk in rows["a"].chunks}) == 1


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"write_statistics": False}])
def test_texts_that_are_stored_plain_need_not_be_encoded(tmp_path: Path, options: dict[str, Any]) -> None:
    rows = 50_000
    texts = {"each its own": [f"key-{n:09}" for n in range(rows)], "few": [f"key-{n % 9:09}" for n in range(rows)]}
    opened = source(put(tmp_path / "x.parquet", texts | {"number": range(rows)}, **options))
    request = ReadRequest(tuple(texts), {name: ColumnType(pa.string()) for name in texts}, tuple(texts))
    read = opened.kinds[0].reader.read(opened.places[0], opened.splits[0], request).table
    assert read.cast(pa.schema([(name, pa.string()) for name in texts])).to_pydict() == texts
    encoded = [pa.types.is_dictionary(kind) for kind in read.schema.types]
    assert encoded == ([True, True] if options == {"write_statistics": False} else [False, not options])


def test_old_timestamps_of_96_bits(tmp_path: Path) -> None:
    moments = [dt.datetime(9999, 12, 31), dt.datetime(2020, 1, 1, 0, 0, 0, 5)]
    table = {"t": pa.array(moments, pa.timestamp("us"))}
    assert column(source(put(tmp_path / "x.parquet", table, use_deprecated_int96_timestamps=True)), "t") == moments


def test_what_is_kept_between_tasks_is_read_back_and_forgotten(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("x", pa.int64())])
    sink = FileSink(fs.LocalFileSystem(), str(tmp_path), "out", "parquet", schema, schema)
    for rows in (pa.record_batch({"x": [1, 2], "s": ["a", None]}), pa.record_batch({"x": pa.array([], pa.int64())})):
        sink.write_scratch("piece", rows)
        assert sink.read_scratch("piece").equals(rows)
    assert [path.name for path in (tmp_path / SCRATCH).iterdir()] == ["piece.arrow"]
    sink.drop_scratch()
    assert list(tmp_path.iterdir()) == []


# ORC


def test_the_footer_of_orc_has_the_columns_by_name(tmp_path: Path) -> None:
    table = pa.table({"a.b": [1, 2], "a": [{"b": 5}, {"b": 6}], "": [3, 4], "`": [5, 6]})
    path = put(tmp_path / "x.orc", table)
    with path.open("rb") as file:
        assert column_names(file) == table.column_names
    for name in table.column_names:  # a dot in a name is no field of a struct
        assert column(source(path), name) == table[name].to_pylist()


def test_times_without_zone_are_wall_clocks_and_those_with_one_instants(tmp_path: Path) -> None:
    moment = dt.datetime(2020, 3, 29, 2, 30, 0, 5)
    zoned = pa.array([moment], pa.timestamp("us", "America/New_York"))
    naive = pa.array([moment], pa.timestamp("us"))
    opened = source(put(tmp_path / "x.orc", {"t": naive, "z": zoned, "n": [1_500_000_000]}), schema="n:timestamp(unix)")
    assert opened.schema.types == [pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC")]
    of_number = dt.datetime(2017, 7, 14, 2, 40, tzinfo=dt.UTC)
    assert read_all(opened).rows == [{"t": moment, "z": moment.replace(tzinfo=dt.UTC), "n": of_number}]


@pytest.mark.parametrize("moment", [dt.datetime(9999, 12, 31), dt.datetime(1, 1, 1), dt.datetime(1677, 9, 1)])
def test_times_out_of_range_are_an_error_that_names_their_column(tmp_path: Path, moment: dt.datetime) -> None:
    table = {"n": [1, 2], "l": [[1], [2]], "t": pa.array([None, moment], pa.timestamp("us"))}
    opened = source(put(tmp_path / "x.orc", table))
    assert column(opened, "n") == [1, 2]
    with pytest.raises(InputError, match=r"column 't' of .*x\.orc holds a timestamp outside 1677-09-21 to 2262-04-11"):
        column(opened, "t")


def test_columns_that_cannot_be_read_are_an_error(tmp_path: Path) -> None:
    union = pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])])
    path = put(tmp_path / "x.orc", {"n": [1], "u": union})
    with pytest.raises(InputError, match=r"column 'u' of .*x\.orc is of a union type"):
        source(path)
    put(path, pa.table([[1], [2]], names=["a", "a"]))
    with pytest.raises(InputError, match=r"x\.orc has two columns named 'a'"):
        source(path)
    put(path, {"a": [1], "name": ["x"]}, compression="uncompressed")
    path.write_bytes(path.read_bytes().replace(b"name", b"n\xffme"))
    with pytest.raises(InputError, match=r"x\.orc cannot be read as ORC: its footer is damaged"):
        source(path)


def test_a_file_that_is_cut_anywhere_is_named(tmp_path: Path) -> None:
    path = put(tmp_path / "x.orc", {"a": range(50), "b": ["x"] * 50}, compression="zstd")
    whole = path.read_bytes()
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"x\.orc cannot be read as ORC: "):
            source(path)


def test_the_size_of_a_split_is_that_of_its_columns_in_memory(tmp_path: Path) -> None:
    rows = 20_000
    table = pa.table({"word": ["the same text"] * rows, "n": range(rows), "x": [0.5] * rows})
    path = put(tmp_path / "x.orc", table, compression="zstd")
    assert path.stat().st_size < table.nbytes // 50
    assert 0.8 * table.nbytes < source(path).splits[0].nbytes < 1.25 * table.nbytes


# Files that count their rows in several places, and not alike: no row is passed over in silence


def test_orc_whose_footer_contradicts_itself_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "a.orc", {"n": range(20)})
    assert len(read_all(source(path)).rows) == 20
    monkeypatch.setattr("wincli.readers.formats.orc._groups", lambda _tail: [(19, 100)])
    with pytest.raises(InputError, match=r"a.orc is damaged: its footer names 20 rows, and its stripes have 19"):
        source(path)


def lie(path: Path, told: Callable[[pq.FileMetaData], int], new: int) -> None:
    """Let the footer of a file of Parquet say another number; both are varints of Thrift with three bytes."""

    def varint(value: int) -> bytes:
        return bytes([value << 1 & 0x7F | 0x80, value >> 6 & 0x7F | 0x80, value >> 13 & 0x7F])

    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    old = varint(told(pq.read_metadata(path)))
    for place in (found.start() for found in re.finditer(re.escape(old), content) if found.start() > footer):
        path.write_bytes(content[:place] + varint(new) + content[place + len(old) :])
        if told(pq.read_metadata(path)) == new:
            return
    pytest.fail("the footer does not hold that number")


GROUP = 10_000
LIES: dict[str, Callable[[pq.FileMetaData], int]] = {
    "file": lambda footer: footer.num_rows,
    "group": lambda footer: footer.row_group(1).num_rows,
    "column": lambda footer: footer.row_group(1).column(footer.num_columns - 1).num_values,
    "begin": lambda footer: footer.row_group(1).column(footer.num_columns - 1).data_page_offset,
}


@pytest.mark.parametrize("lies", ["file", "group", "file group", "column", "begin"])
@pytest.mark.parametrize("nested", [False, True])
def test_parquet_whose_footer_contradicts_itself_is_damaged(tmp_path: Path, lies: str, nested: bool) -> None:
    columns: dict[str, Any] = {"items": [[]] * 2 * GROUP} if nested else {}
    path = put(tmp_path / "a.parquet", {**columns, "n": range(2 * GROUP)}, use_dictionary=False, row_group_size=GROUP)
    assert len(read_all(source(path)).rows) == 2 * GROUP
    footer = pq.read_metadata(path)
    first = footer.row_group(0).column(footer.num_columns - 1).data_page_offset
    for each in lies.split():
        lie(path, LIES[each], first if each == "begin" else LIES[each](footer) - 1)
    why = "its footer names a row group twice, and so its rows" if lies == "begin" else ".*, and "
    with pytest.raises(InputError, match=f"a.parquet is damaged: {why}"):
        source(path)


# A condition that Parquet statistics rule out is not read: the positions of the other rows are what they were


ROWS, STEP = 10_000, 1_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    random = np.random.default_rng(1)
    table = pa.table(
        {
            "ts": np.arange(ROWS),
            "name": [f"n{i // STEP}" for i in range(ROWS)],
            "x": random.random(ROWS),
            "sparse": pa.array([i if i < STEP else None for i in range(ROWS)], pa.int64()),
        }
    )
    put(tmp_path / "log.parquet", table, row_group_size=STEP)
    return tmp_path


def source_of(folder: Path, where: str) -> FileSource:
    opened = source(folder)
    projection = make_projection(opened.schema, RowExpressions((), parse_expression(where)))
    return opened.with_steps([Project(projection, (), stored_condition(projection))])


@pytest.mark.parametrize(
    ("where", "groups"),
    [
        ("ts BETWEEN 2500 AND 3500", 2),
        ("ts < 0", 0),
        ("name = 'n7'", 1),
        ("ts >= 9000 OR ts < 1000", 2),
        ("sparse IS NOT NULL", 1),
        ("ts > 8999 AND x > 2", 1),  # NaN is above all numbers, and statistics do not tell of it
        ("x > 0.5", 10),
        ("ts % 2 = 0", 10),
        ("CAST(name AS INT) > 1", 10),  # it fails for each row, and that must be told
    ],
)
def test_row_groups_without_such_rows_are_not_read(folder: Path, where: str, groups: int) -> None:
    opened = source_of(folder, where)
    (split,) = opened.splits
    batch = opened.read(split, ["ts", "x"])
    assert len(batch.pos) == groups * STEP
    assert batch.skipped == ROWS - groups * STEP
    assert batch.pos.tolist() == batch.rows["ts"].to_pylist()
    (step,) = opened.steps
    plain = opened.with_steps([replace(step, condition=None)]).read(split, ["ts", "x"])
    kept = [batch.pos if batch.kept is None else batch.pos[batch.kept] for batch in (batch, plain)]
    assert kept[0].tolist() == kept[1].tolist()


def test_the_bytes_of_other_row_groups_and_columns_stay_on_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[list[int], Any]] = []
    read = pq.ParquetFile.read_row_groups

    def noting(self: pq.ParquetFile, numbers: list[int], **options: Any) -> pa.Table:
        asked.append((numbers, sorted(options["columns"])))
        return read(self, numbers, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", noting)
    opened = source_of(folder, "ts BETWEEN 2500 AND 3500")
    opened.read(opened.splits[0], ["x"])
    assert asked == [([2, 3], ["ts", "x"])]


# Footers of many files: in threads where they are waited for, in this thread else, and in order in both


MANY = [
    ListedFile(Located(fs.LocalFileSystem(), f"/log/{number}.parquet", f"/log/{number}.parquet"), 10, None, f"{number}")
    for number in range(300)
]


class Disk:
    """Reads footers: a file of number n has n + 1 rows. ``wait``: seconds for each. ``bad``: one that fails."""

    def __init__(self, wait: float, bad: int | None = None) -> None:
        self.wait, self.bad, self.threads = wait, bad, set[int]()

    def footer(self, place: Located) -> Footer:
        self.threads.add(threading.get_ident())
        time.sleep(self.wait)
        number = int(place.shown.rpartition("/")[2].removesuffix(".parquet"))
        if number == self.bad:
            raise InputError(f"{place.shown} is broken")
        return Footer(pa.schema([("x", pa.int64())]), ((number + 1, 8 * number),))


def test_files_that_are_waited_for_are_read_in_threads_with_the_same_splits_and_errors() -> None:
    slow, fast = Disk(0.002), Disk(0)
    plans = [plan_footers(MANY, 1 << 20, disk.footer) for disk in (slow, fast)]
    assert len(slow.threads) > 1
    assert list(plans[0].splits) == list(plans[1].splits)
    assert [split.rows for split in plans[0].splits] == list(range(1, 301))
    for bad in (0, 3, 250):
        for wait in (0, 0.002):
            with pytest.raises(InputError, match=f"/log/{bad}.parquet is broken"):
                plan_footers(MANY, 1 << 20, Disk(wait, bad).footer)
