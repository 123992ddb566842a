"""ORC as input: the same rows however stripes make splits, in the plain types, and errors that name the file."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pyarrow import orc

from support.readers import column, read_all, source
from support.strategies import examples
from wincli.readers.formats.orc import column_names
from wincli.readers.open import open_source
from wincli.readers.options import ReadOptions
from wincli.windowing.errors import InputError

LISTS = pa.list_(pa.int64())
LAW = examples(60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def put(path: Path, *stripes: pa.Table, **options: Any) -> Path:
    """Write a file with one stripe for each table that has text."""
    with orc.ORCWriter(str(path), **{"stripe_size": 1, **options}) as writer:
        for table in stripes:
            writer.write(table)
    return path


def numbers(*sizes: int) -> list[pa.Table]:
    """Tables that count their rows on from one to the next, with text that fills a stripe."""
    ends = [sum(sizes[: at + 1]) for at in range(len(sizes))]
    return [
        pa.table({"a": range(end - size, end), "fill": [f"{end}"] * size})
        for size, end in zip(sizes, ends, strict=True)
    ]


def test_stripes_next_to_each_other_go_together_up_to_the_split_size(tmp_path: Path) -> None:
    path = put(tmp_path / "x.orc", *numbers(2, 2, 2, 2, 2))
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
    """The stripes of some files, with texts that repeat, lists and nulls."""
    made = []
    for _ in range(draw(st.integers(1, 3))):
        stripes = []
        for size in draw(st.lists(st.integers(0, 5), max_size=4)):
            words = draw(st.lists(st.sampled_from(["x", "yy", "", None]), min_size=size, max_size=size))
            values = draw(st.lists(st.none() | st.integers(-9, 9), min_size=size, max_size=size))
            lists = [None if value is None else [value] * (value % 3) for value in values]
            columns = {"word": pa.array(words, pa.string()), "n": pa.array(values, pa.int64())}
            fill = pa.array(map(str, range(size)), pa.string())
            stripes.append(pa.table({**columns, "many": pa.array(lists, LISTS), "fill": fill}))
        made.append(stripes)
    return made


EMPTY = pa.table({"word": pa.array([], pa.string()), "n": pa.array([], pa.int64()), "many": pa.array([], LISTS)})
EMPTY = EMPTY.append_column("fill", pa.array([], pa.string()))


@LAW
@given(made=files(), split_bytes=st.integers(1, 400))
def test_files_read_the_same_however_they_are_cut(
    tmp_path_factory: pytest.TempPathFactory, made: list[list[pa.Table]], split_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("orc")
    for number, stripes in enumerate(made):
        put(folder / f"{number}.orc", EMPTY, *stripes)
    wanted = [row for stripes in made for table in stripes for row in table.to_pylist()]
    opened = source(folder, split_bytes=split_bytes)
    every = read_all(opened)
    assert every.rows == wanted
    assert every.pos == list(range(len(wanted)))
    own = [number for stripes in made for number in range(1, 1 + sum(map(len, stripes)))]
    assert every.lines == own
    parts = [part for split in opened.splits for part in opened.parts_of(split)]
    batches = [opened.read(part, ["n", "word"], ["word"]) for part in parts]
    assert [pos for batch in batches for pos in batch.pos.tolist()] == every.pos
    assert [value for batch in batches for value in batch.rows["n"].to_pylist()] == [row["n"] for row in wanted]
    texts = [value for batch in batches for value in batch.rows["word"].cast(pa.string()).to_pylist()]
    assert texts == [row["word"] for row in wanted]
    assert all(batch.rows.schema.field("word").type == pa.dictionary(pa.int32(), pa.string()) for batch in batches)


def test_footers_are_read_without_tasks_and_their_columns_by_name(tmp_path: Path) -> None:
    def each(function: Any, items: Any) -> list[Any]:
        raise AssertionError("this needs no task")

    path = put(tmp_path / "x.orc", pa.table({"a": [1], "b": ["x"]}))
    assert open_source([str(path)], ReadOptions(), each).schema.names == ["a", "b"]
    with path.open("rb") as file:
        assert column_names(file) == ["a", "b"]


def test_only_requested_columns_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = source(put(tmp_path / "x.orc", pa.table({"a": [1], "b": [2], "c": [3]})))
    asked: list[Any] = []
    read = orc.ORCFile.read_stripe

    def spy(self: Any, stripe: int, columns: Any = None) -> pa.RecordBatch:
        asked.append((stripe, columns))
        return read(self, stripe, columns=columns)

    monkeypatch.setattr(orc.ORCFile, "read_stripe", spy)
    assert opened.read(opened.splits[0], ["c", "a"]).rows.to_pydict() == {"c": [3], "a": [1]}
    assert asked == [(0, ["c", "a"])]
    assert opened.read(opened.splits[0], []).pos.tolist() == [0]
    assert len(asked) == 1


def test_a_dot_in_a_name_is_no_field_of_a_struct(tmp_path: Path) -> None:
    table = pa.table({"a.b": [1, 2], "a": [{"b": 5}, {"b": 6}], "": [3, 4], "`": [5, 6]})
    opened = source(put(tmp_path / "x.orc", table))
    for name in table.column_names:
        assert column(opened, name) == table[name].to_pylist()


def test_files_are_unified_and_what_one_lacks_is_null(tmp_path: Path) -> None:
    put(tmp_path / "1.orc", pa.table({"a": pa.array([1], pa.int32())}))
    put(tmp_path / "2.orc", pa.table({"b": ["x"], "a": pa.array([2.5], pa.float32())}))
    opened = source(tmp_path)
    assert opened.schema == pa.schema([("a", pa.float64()), ("b", pa.string())])
    assert [tuple(row.values()) for row in read_all(opened).rows] == [(1.0, None), (2.5, "x")]


def test_a_value_that_cannot_be_cast_rejects_its_row(tmp_path: Path) -> None:
    table = pa.table({"t": ["03/06/05", "x", None], "n": [1, 2, 3]})
    path = put(tmp_path / "x.orc", table.slice(0, 1), table.slice(1))
    every = read_all(source(path, schema="t:timestamp(%d/%m/%y)", split_bytes=1))
    assert every.rows == [{"t": dt.datetime(2005, 6, 3), "n": 1}, {"t": None, "n": 3}]
    assert every.pos == [0, 2]
    assert every.rejects == [
        {
            **{"_reason": "unparsable", "_file": str(path), "_row": 2},
            **{"_detail": "column t: 'x' is not a timestamp", "_text": None},
        }
    ]


def test_a_number_is_no_time_without_its_unit(tmp_path: Path) -> None:
    path = put(tmp_path / "x.orc", pa.table({"t": [1_500_000_000]}))
    assert column(source(path, schema="t:timestamp(unix)"), "t") == [dt.datetime(2017, 7, 14, 2, 40, tzinfo=dt.UTC)]


def test_times_without_zone_are_wall_clocks_and_those_with_one_instants(tmp_path: Path) -> None:
    moment = dt.datetime(2020, 3, 29, 2, 30, 0, 5)
    zoned = pa.array([moment], pa.timestamp("us", "America/New_York"))
    opened = source(put(tmp_path / "x.orc", pa.table({"t": pa.array([moment], pa.timestamp("us")), "z": zoned})))
    assert opened.schema.types == [pa.timestamp("ns"), pa.timestamp("ns", "UTC")]
    row = read_all(opened).rows[0]
    assert row["t"] == moment
    assert row["z"] == moment.replace(tzinfo=dt.UTC)


@pytest.mark.parametrize("moment", [dt.datetime(9999, 12, 31), dt.datetime(1, 1, 1), dt.datetime(1677, 9, 1)])
def test_times_out_of_range_are_an_error_that_names_their_column(tmp_path: Path, moment: dt.datetime) -> None:
    table = pa.table({"n": [1, 2], "l": [[1], [2]], "t": pa.array([None, moment], pa.timestamp("us"))})
    opened = source(put(tmp_path / "x.orc", table))
    assert column(opened, "n") == [1, 2]
    with pytest.raises(InputError, match=r"column 't' of .*x\.orc holds a timestamp outside 1677-09-21 to 2262-04-11"):
        column(opened, "t")


def test_a_union_is_an_error_that_names_its_column(tmp_path: Path) -> None:
    union = pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])])
    put(tmp_path / "x.orc", pa.table({"n": [1], "u": union}))
    with pytest.raises(InputError, match=r"column 'u' of .*x\.orc is of a union type"):
        source(tmp_path)


def test_a_file_without_rows_is_one_split(tmp_path: Path) -> None:
    opened = source(put(tmp_path / "x.orc", pa.table({"a": pa.array([], pa.string())})))
    assert [(s.rows, s.ends_file) for s in opened.splits] == [(0, True)]
    assert read_all(opened).rows == []
    assert opened.read(opened.splits[0], ["a"], dictionary=["a"]).rows.num_rows == 0
    assert opened.parts_of(opened.splits[0]) == list(opened.splits)


def test_two_columns_of_one_name_are_an_error(tmp_path: Path) -> None:
    put(tmp_path / "x.orc", pa.table([[1], [2]], names=["a", "a"]))
    with pytest.raises(InputError, match=r"x\.orc has two columns named 'a'"):
        source(tmp_path)


@pytest.mark.parametrize("content", [b"", b"nonsense", b"ORC and then nothing ORC"])
def test_what_is_no_orc_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.orc").write_bytes(content)
    with pytest.raises(InputError, match=r"bad\.orc cannot be read as ORC: "):
        source(tmp_path)


def test_a_truncated_file_and_one_that_breaks_later_are_named(tmp_path: Path) -> None:
    path = put(tmp_path / "x.orc", pa.table({"a": [str(n * n) for n in range(10_000)]}), compression="zstd")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"x\.orc cannot be read as ORC: "):
        source(path)
    path.write_bytes(whole[:100] + bytes(2000) + whole[2100:])
    opened = source(path)
    with pytest.raises(InputError, match=r"x\.orc cannot be read as ORC: "):
        read_all(opened)


def test_a_file_that_is_cut_anywhere_is_named(tmp_path: Path) -> None:
    path = put(tmp_path / "x.orc", pa.table({"a": range(50), "b": ["x"] * 50}), compression="zstd")
    whole = path.read_bytes()
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"x\.orc cannot be read as ORC: "):
            source(path)


def test_a_name_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    path = put(tmp_path / "x.orc", pa.table({"a": [1], "name": ["x"]}), compression="uncompressed")
    path.write_bytes(path.read_bytes().replace(b"name", b"n\xffme"))
    with pytest.raises(InputError, match=r"x\.orc cannot be read as ORC: its footer is damaged"):
        source(path)


def test_paths_that_are_no_files_are_skipped_on_request(tmp_path: Path) -> None:
    put(tmp_path / "1.orc", pa.table({"a": [1]}))
    (tmp_path / "2.orc").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"2\.orc \(a link that leads nowhere\) cannot be read"):
        source(tmp_path)
    opened = source(tmp_path, skip_unreadable=True)
    assert column(opened, "a") == [1]
    assert len(opened.skipped) == 1


def test_the_size_of_a_split_is_that_of_its_columns_in_memory(tmp_path: Path) -> None:
    rows = 20_000
    table = pa.table({"word": ["the same text"] * rows, "n": range(rows), "x": [0.5] * rows})
    path = put(tmp_path / "x.orc", table, compression="zstd")
    assert path.stat().st_size < table.nbytes // 50
    assert 0.8 * table.nbytes < source(path).splits[0].nbytes < 1.25 * table.nbytes
