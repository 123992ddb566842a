"""Parquet and ORC as input: the same rows however groups and stripes make splits, plain types, and damage."""

from __future__ import annotations

import datetime as dt
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pyarrow import fs, orc
from pyarrow.fs import LocalFileSystem

from support.readers import column, put, read_all, source
from support.strategies import examples
from wincli.readers.files.file import Located
from wincli.readers.files.walk import ListedFile
from wincli.readers.formats.columnar import Footer, plan_footers
from wincli.readers.formats.orc import column_names
from wincli.readers.formats.split_rows import ReadRequest
from wincli.readers.values.types import ColumnType
from wincli.windowing.errors import InputError
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


def test_a_number_is_no_time_without_its_unit(tmp_path: Path) -> None:
    path = put(tmp_path / "x.orc", {"t": [1_500_000_000]})
    assert column(source(path, schema="t:timestamp(unix)"), "t") == [dt.datetime(2017, 7, 14, 2, 40, tzinfo=dt.UTC)]


def test_times_without_zone_are_wall_clocks_and_those_with_one_instants(tmp_path: Path) -> None:
    moment = dt.datetime(2020, 3, 29, 2, 30, 0, 5)
    zoned = pa.array([moment], pa.timestamp("us", "America/New_York"))
    opened = source(put(tmp_path / "x.orc", {"t": pa.array([moment], pa.timestamp("us")), "z": zoned}))
    assert opened.schema.types == [pa.timestamp("ns"), pa.timestamp("ns", "UTC")]
    assert read_all(opened).rows == [{"t": moment, "z": moment.replace(tzinfo=dt.UTC)}]


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


# Footers of Parquet are messages of Thrift's compact protocol. A message: by the number of a field its type and its
# value, which is a number, bytes or a message; of a list it is the type of items and these.

Message = dict[int, tuple[int, Any]]
STRUCT, LIST, BINARY = 12, 9, 8
NUM_ROWS, ROW_GROUPS = 3, 4  # of a file
COLUMNS, GROUP_ROWS = 1, 3  # of a row group
COLUMN_META, NUM_VALUES = 3, 5  # of a column of a row group, and of its metadata


def edit(path: Path, change: Callable[[Message], object]) -> None:
    """Let the footer of a file say something else."""
    content = path.read_bytes()
    size = struct.unpack("<I", content[-8:-4])[0]
    footer, _ = message_at(content[-8 - size : -8], 0)
    change(footer)
    written = as_message(footer)
    path.write_bytes(content[: -8 - size] + written + struct.pack("<I", len(written)) + b"PAR1")


def number_at(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte, at = data[at], at + 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def as_number(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def message_at(data: bytes, at: int) -> tuple[Message, int]:
    fields: Message = {}
    number = 0
    while kind := data[at] & 15:
        step = data[at] >> 4
        at += 1
        assert step, "fields of footers are close to each other"
        number += step
        value, at = value_at(kind, data, at)
        fields[number] = kind, value
    return fields, at + 1


def value_at(kind: int, data: bytes, at: int) -> tuple[Any, int]:
    if kind in (1, 2):
        return kind == 1, at
    if kind == STRUCT:
        return message_at(data, at)
    if kind == BINARY:
        size, at = number_at(data, at)
        return data[at : at + size], at + size
    if kind != LIST:
        value, at = number_at(data, at)
        return value >> 1 ^ -(value & 1), at
    size, of = data[at] >> 4, data[at] & 15
    at += 1
    if size == 15:
        size, at = number_at(data, at)
    items = []
    for _ in range(size):
        item, at = value_at(of, data, at)
        items.append(item)
    return (of, items), at


def as_message(message: Message) -> bytes:
    found, before = bytearray(), 0
    for number in sorted(message):
        kind, value = message[number]
        kind = (1 if value else 2) if kind in (1, 2) else kind
        found += bytes([number - before << 4 | kind]) + as_value(kind, value)
        before = number
    return bytes(found) + b"\0"


def as_value(kind: int, value: Any) -> bytes:
    if kind in (1, 2):
        return b""
    if kind == STRUCT:
        return as_message(value)
    if kind == BINARY:
        return as_number(len(value)) + value
    if kind != LIST:
        return as_number(value << 1 ^ value >> 63)
    of, items = value
    head = bytes([len(items) << 4 | of]) if len(items) < 15 else bytes([0xF0 | of]) + as_number(len(items))
    return head + b"".join(as_value(of, item) for item in items)


def less(message: Message, field: int) -> None:
    kind, value = message[field]
    message[field] = kind, value - 1


def groups_of(footer: Message) -> list[Message]:
    return footer[ROW_GROUPS][1][1]  # type: ignore[no-any-return]


CHANGES: dict[str, Callable[[Message], object]] = {
    "fewer in the file": lambda footer: less(footer, NUM_ROWS),
    "fewer in a group": lambda footer: less(groups_of(footer)[-1], GROUP_ROWS),
    "fewer in both": lambda footer: (less(footer, NUM_ROWS), less(groups_of(footer)[-1], GROUP_ROWS)),
    "fewer in a column": lambda footer: less(groups_of(footer)[-1][COLUMNS][1][1][-1][COLUMN_META][1], NUM_VALUES),
    "group left out": lambda footer: groups_of(footer).pop(),
    "group twice": lambda footer: groups_of(footer).__setitem__(1, groups_of(footer)[0]),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("nested", [False, True])
def test_parquet_whose_footer_contradicts_itself_is_damaged(tmp_path: Path, change: str, nested: bool) -> None:
    columns = {"items": [[1, 2]] * 20} if nested else {}
    path = put(tmp_path / "a.parquet", {**columns, "n": range(20)}, row_group_size=10)
    edit(path, lambda _: None)
    assert len(read_all(source(path)).rows) == 20
    edit(path, CHANGES[change])
    with pytest.raises(InputError, match=r"a.parquet is damaged: .*, and "):
        source(path)


# Footers of many files: in threads where they are waited for, in this thread else, and in order in both


MANY = [
    ListedFile(
        Located(LocalFileSystem(), f"/log/{number}.parquet", f"/log/{number}.parquet"), 10, None, f"{number}.parquet"
    )
    for number in range(300)
]
FOOTER = pa.schema([("x", pa.int64())])


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
        return Footer(FOOTER, ((number + 1, 8 * number),))


def test_files_that_are_waited_for_are_read_in_threads_with_the_same_splits() -> None:
    slow, fast = Disk(0.002), Disk(0)
    plans = [plan_footers(MANY, 1 << 20, disk.footer) for disk in (slow, fast)]
    assert len(slow.threads) > 1
    assert list(plans[0].splits) == list(plans[1].splits)
    assert [split.rows for split in plans[0].splits] == list(range(1, 301))


@pytest.mark.parametrize("bad", [0, 3, 250])
@pytest.mark.parametrize("wait", [0, 0.002])
def test_a_footer_that_fails_names_its_file(wait: float, bad: int) -> None:
    with pytest.raises(InputError, match=f"/log/{bad}.parquet is broken"):
        plan_footers(MANY, 1 << 20, Disk(wait, bad).footer)
