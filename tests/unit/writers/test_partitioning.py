"""A partitioned result: which columns may divide it, and what other programs and a commit find in its folders."""

from __future__ import annotations

import datetime as dt
import pickle
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.numbered_units import ME
from wincli.readers.files.walk import folder_values
from wincli.windowing.columns.row_digest import RowDigest
from wincli.windowing.columns.row_hashes import RowHasher
from wincli.windowing.engine.rejects import reject_schema
from wincli.windowing.errors import ConfigError, DataError
from wincli.windowing.ports import Part, ResultPart
from wincli.writers.formats.encoder import Write
from wincli.writers.output.output import Output, open_output
from wincli.writers.output.partitioning import bind_partitions, can_name, folders_of, write_folders
from wincli.writers.output.sink import FileSink

SCHEMA = pa.schema([("user", pa.string()), ("day", pa.date32()), ("n", pa.int64()), ("_at", pa.int64())])
REJECTS = reject_schema(pa.schema([("user", pa.string())]))
NULL = "__HIVE_DEFAULT_PARTITION__"
USERS = ["ann", "b/c", "..", "x y", "007", "é", "c:d=%20", "line\nend", None]
ROWS = pa.table(
    {
        "user": [user for user in USERS for _ in range(3)],
        "day": pa.array([20_000 + n % 2 for n in range(27)], pa.int32()).cast(pa.date32()),
        "n": range(27),
        "_at": range(27),
    },
    schema=SCHEMA,
)


def sink_of(output: Output, *by: str, format: Any = "parquet", most_open: int = 4) -> FileSink:
    sink = output.sink(format, SCHEMA, REJECTS, bind_partitions([(name, None) for name in by], SCHEMA, most_open))
    return pickle.loads(pickle.dumps(sink))


def put(out: str, *by: str, format: Any = "parquet", mode: Any = "error", rows: pa.Table = ROWS) -> tuple[Part, ...]:
    with open_output(out, mode, [], ME) as output:
        parts = sink_of(output, *by, format=format).write_parts(7, [rows.slice(0, 10), rows.slice(10)])
        output.commit({"parts": [{"name": part.name} for part in parts], "rejects": []})
    return parts


def files(out: Path) -> list[str]:
    return sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["usr"], "names 'usr', which the result does not have; did you mean 'user'"),
        (["user", "user"], "names 'user' twice"),
        (["_at"], "readers pass over folders whose name begins with _"),
        (["tags"], "values of type list<item: string> cannot name a folder"),
        (["x" * 200], "is too long for a folder"),
        (["user", "tags", "n"], "cannot name a folder"),
    ],
)
def test_a_column_that_cannot_divide_a_result_is_an_error(names: list[str], message: str) -> None:
    schema = pa.schema([*SCHEMA, ("tags", pa.list_(pa.string())), ("x" * 200, pa.int64())])
    with pytest.raises(ConfigError) as error:
        bind_partitions([(name, None) for name in names], schema, 1)
    assert message in str(error.value).replace("\n", "; ").replace("wincli: ", "")


def test_a_column_is_left_for_the_files() -> None:
    with pytest.raises(ConfigError, match="leaves no column in the files"):
        bind_partitions([("user", None)], pa.schema([("user", pa.string())]), 1)
    assert bind_partitions([], SCHEMA, 1) is None


@pytest.mark.parametrize("format", ["parquet", "csv", "jsonl", "orc"])
def test_a_folder_for_each_value_holds_its_rows_without_the_column(tmp_path: Path, format: str) -> None:
    parts = put(str(tmp_path / "out"), "user", format=format)
    names = ["ann", "b%2Fc", "..", "x y", "007", "é", "c%3Ad%3D%2520", "line%0Aend", NULL]
    expected = sorted(f"user={name}/part-00007.{format}" for name in names)
    assert [part.name for part in parts] == expected
    assert files(tmp_path / "out") == sorted([*expected, "_SUCCESS", "_wincli/manifest.json"])
    assert all(part.rows == 3 and part.nbytes == (tmp_path / "out" / part.name).stat().st_size for part in parts)
    if format == "csv":
        text = (tmp_path / "out" / "user=ann" / "part-00007.csv").read_text()
        assert text == '"day","n","_at"\n2024-10-04,0,0\n2024-10-05,1,1\n2024-10-04,2,2\n'


def test_pyarrow_duckdb_and_polars_read_the_values_back(tmp_path: Path) -> None:
    put(str(tmp_path / "out"), "day", "user")
    expected = sorted(
        zip(*(ROWS[name].cast(pa.string()).to_pylist() for name in ("user", "day", "n")), strict=True), key=str
    )
    glob = str(tmp_path / "out" / "**" / "*.parquet")
    read = {
        "pyarrow": ds.dataset(tmp_path / "out", partitioning="hive").to_table(),
        "duckdb": duckdb.sql(f"select * from read_parquet('{glob}', hive_partitioning = true)").to_arrow_table(),
        "polars": pl.read_parquet(glob, hive_partitioning=True).to_arrow(),
    }
    for reader, table in read.items():
        texts = [table[name].cast(pa.string()).to_pylist() for name in ("user", "day", "n")]
        assert sorted(zip(*texts, strict=True), key=str) == expected, reader
    kinds = {reader: str(table.schema.field("day").type) for reader, table in read.items()}
    assert kinds == {"pyarrow": "string", "duckdb": "date32[day]", "polars": "date32[day]"}


def test_a_result_without_rows_has_a_file_that_gives_its_columns(tmp_path: Path) -> None:
    (part,) = put(str(tmp_path / "out"), "day", "user", rows=ROWS.slice(0, 0))
    assert part.name == f"day={NULL}/user={NULL}/part-00007.parquet"
    assert part.rows == 0
    glob = str(tmp_path / "out" / "**" / "*.parquet")
    found = duckdb.sql(f"select * from read_parquet('{glob}', hive_partitioning = true)").to_arrow_table()
    assert (found.num_rows, found.column_names) == (0, ["n", "_at", "day", "user"])
    assert pl.read_parquet(glob, hive_partitioning=True).columns == ["n", "_at", "day", "user"]


def test_more_values_than_files_may_be_open_give_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = put(str(tmp_path / "few"), "user", "n")
    monkeypatch.setattr("wincli.writers.output.partitioning.write_folders.__defaults__", (1,))
    assert [(part.name, part.rows) for part in put(str(tmp_path / "many"), "user", "n")] == [
        (part.name, part.rows) for part in few
    ]


def test_a_retried_task_replaces_its_files_and_a_discarded_result_leaves_no_folder(tmp_path: Path) -> None:
    with open_output(str(tmp_path / "out"), "error", [], ME) as output:
        sink = sink_of(output, "user")
        sink.write_rejects(0, pa.table({"user": ["x"]}))
        first = sink.write_parts(1, [ROWS])
        assert sink.write_parts(1, [ROWS]) == first
        Path(output.staging, first[0].name).with_name(".part-00001.parquet.0123456789ab").write_text("half")
        sink.discard()
        assert sorted(path.name for path in Path(output.staging).iterdir()) == ["_rejected"]


@pytest.mark.parametrize("by", [(), ("user",), ("day", "user"), ("n",)])
@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_digests_of_parts_add_up_to_that_of_all_rows_however_they_are_divided(
    tmp_path: Path, by: tuple[str, ...], format: str
) -> None:
    parts = put(str(tmp_path / "out"), *by, format=format)
    digests = [RowDigest.parse(part.digest) for part in parts if isinstance(part, ResultPart)]
    assert sum(filter(None, digests), RowDigest()) == RowHasher(SCHEMA).digest(ROWS)


def test_an_empty_text_of_a_partition_column_counts_as_null(tmp_path: Path) -> None:
    rows, null = ROWS.slice(0, 1), pa.array([None], pa.string())
    (part,) = put(str(tmp_path / "out"), "user", rows=rows.set_column(0, "user", pa.array([""])))
    assert isinstance(part, ResultPart)
    assert part.digest == str(RowHasher(SCHEMA).digest(rows.set_column(0, "user", null)))


# Names of folders: as Hive and Spark write them, and read back as the same values


HIVE_ESCAPES = [*range(1, 0x20), 0x7F, *map(ord, "\"#%'*/:=?\\{[]^")]
"""The characters that `ExternalCatalogUtils.escapePathName` of Spark escapes."""


def folder_names(values: list[Any], kind: pa.DataType | None = None) -> list[str]:
    """Return the folder of each value of a column ``x``, without its name."""
    codes, folders = folders_of(["x"], [pa.chunked_array([pa.array(values, kind)])])
    assert len(set(folders)) == len(folders)
    return [folders[code].removeprefix("x=") for code in codes]


def test_the_characters_that_hive_escapes_are_escaped_and_no_others() -> None:
    expected = [f"%{code:02X}" if code in HIVE_ESCAPES else chr(code) for code in range(1, 0x300)]
    assert folder_names([chr(code) for code in range(1, 0x300)]) == expected
    assert folder_names(["\0"]) == ["%00"], "no file system takes it as it is"


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, -5, None], pa.int64(), ["1", "-5", NULL]),
        ([True, False], None, ["true", "false"]),
        ([dt.date(2026, 11, 1)], None, ["2026-11-01"]),
        ([dt.date(2026, 11, 1)], pa.date64(), ["2026-11-01"]),
        ([dt.datetime(2026, 11, 1)], pa.timestamp("us"), ["2026-11-01 00%3A00%3A00"]),
        ([dt.datetime(2026, 11, 1, 1, 2, 3, 450_000)], pa.timestamp("ns"), ["2026-11-01 01%3A02%3A03.45"]),
        ([1_793_494_800], pa.timestamp("s", "Europe/Berlin"), ["2026-11-01 01%3A00%3A00"]),
        ([dt.time(10, 0), dt.time(10, 0, 0, 500)], None, ["10%3A00%3A00", "10%3A00%3A00.0005"]),
        ([Decimal("0.00000001"), Decimal("2.50000000")], pa.decimal128(12, 8), ["0.00000001", "2.50000000"]),
        ([0.0, -0.0, 1.0, 0.001, 1e-4, 1e7, 9_999_999.5, -1.5e300], None,
         ["0.0", "-0.0", "1.0", "0.001", "1.0E-4", "1.0E7", "9999999.5", "-1.5E300"]),
        ([float("nan"), float("inf"), -float("inf"), None], None, ["NaN", "Infinity", "-Infinity", NULL]),
        ([0.1, 3e10], pa.float32(), ["0.1", "3.0E10"]),
        (["a", "", None, "..", "a b", "é", "A"], None, ["a", NULL, NULL, "..", "a b", "é", "A"]),
        ([None, None], pa.null(), [NULL, NULL]),
    ],
)  # fmt: skip
def test_values_are_written_as_spark_casts_them_to_text(values: Any, kind: Any, expected: list[str]) -> None:
    assert folder_names(values, kind) == expected


def test_rows_of_a_dictionary_and_of_several_chunks_get_the_folders_of_their_values() -> None:
    column = pa.chunked_array([pa.array(["a", None, "b"]), pa.array([], pa.string()), pa.array(["b", ""])])
    for each in (column, column.dictionary_encode()):
        codes, folders = folders_of(["x", "y=z"], [each, pa.chunked_array([pa.array([1, 1, 1, 2, 1])])])
        rows = [folders[code] for code in codes]
        assert rows == [f"x={x}/y%3Dz={y}" for x, y in [("a", 1), (NULL, 1), ("b", 1), ("b", 2), (NULL, 1)]]


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=20) | st.none(), min_size=1))
def test_a_reader_of_hive_folders_gets_the_texts_back(values: list[str | None]) -> None:
    for name, value in zip(folder_names(values, pa.string()), values, strict=True):
        assert "/" not in name
        assert folder_values(f"x={name}/part-00000.parquet") == {"x": None if value in ("", NULL) else value}


def test_a_value_that_no_folder_can_be_named_by_is_an_error_that_says_so() -> None:
    with pytest.raises(DataError, match="a folder with 302 bytes, and a name has at most 255: x=aaaa"):
        folder_names(["a" * 300])
    bad = pa.array([b"\xff"], pa.binary()).view(pa.string())
    with pytest.raises(DataError, match=r"no UTF-8 text: b'\\xff'"):
        folders_of(["x"], [pa.chunked_array([bad])])
    assert not any(map(can_name, [pa.binary(), pa.list_(pa.int8()), pa.duration("s"), pa.struct([("a", pa.int8())])]))


# Rows in any order of folders become one file for each folder, with few files open and little in memory


NUMBERED = pa.schema([("n", pa.int64()), ("label", pa.string())])


class Folders:
    """Files in memory, by folder; it knows how many were open at a time."""

    def __init__(self) -> None:
        self.rows: dict[str, list[int]] = {}
        self.open = self.most_open = self.left_by_error = 0

    @contextmanager
    def file(self, folder: str) -> Iterator[Write]:
        assert folder not in self.rows, "a file is written in one go"
        self.rows[folder] = []
        self.open += 1
        self.most_open = max(self.most_open, self.open)

        def write(table: pa.Table) -> None:
            assert table.column_names == NUMBERED.names
            assert [f"{n}" for n in table["n"].to_pylist()] == table["label"].cast(pa.string()).to_pylist()
            self.rows[folder] += table["n"].to_pylist()

        try:
            yield write
        except BaseException:
            self.left_by_error += 1
            raise
        finally:
            self.open -= 1


def tables(keys: list[int], sizes: list[int], with_dictionary: bool = False) -> list[pa.Table]:
    label = pa.array([f"{n}" for n in range(len(keys))], pa.string())
    rows = pa.table(
        {"k": keys, "n": range(len(keys)), "label": label.dictionary_encode() if with_dictionary else label}
    )
    cuts = [0, *np.cumsum(sizes).tolist()]
    return [rows.slice(low, size) for low, size in zip(cuts, [*sizes, len(keys)], strict=True)]


def write_in(folders: Folders, rows: Iterable[pa.Table], most_open: int, buffer: int) -> None:
    counts = write_folders(
        rows,
        lambda rows: folders_of(["k"], [rows["k"]]),
        NUMBERED,
        folders.file,
        tempfile.TemporaryFile,
        most_open,
        buffer,
    )
    assert counts == {folder: len(rows) for folder, rows in folders.rows.items()}


WHOLE = 1 << 30


@given(
    st.lists(st.integers(0, 12), max_size=60),
    st.lists(st.integers(0, 9), max_size=9),
    st.integers(1, 5),
    st.sampled_from([1, 60, 400, WHOLE]),
    st.booleans(),
)
def test_each_folder_gets_its_rows_in_their_order_and_few_files_are_open(
    keys: list[int], sizes: list[int], most_open: int, buffer: int, with_dictionary: bool
) -> None:
    folders = Folders()
    write_in(folders, tables(keys, sizes, with_dictionary), most_open, buffer)
    expected: dict[str, list[int]] = {}
    for n, key in enumerate(keys):
        expected.setdefault(f"k={key}", []).append(n)
    assert folders.rows == expected
    assert folders.most_open <= (1 if buffer == WHOLE else most_open), "what fits into the buffer needs one file open"
    assert folders.open == 0


def test_of_rows_that_do_not_fit_the_largest_folders_stay_open() -> None:
    seen = Counter[str]()

    class Spilled(Folders):
        @contextmanager
        def file(self, folder: str) -> Iterator[Write]:
            seen[folder] = self.open
            with super().file(folder) as write:
                yield write

    write_in(Spilled(), tables(([1] * 5 + [2] + [3] * 4 + [4]) * 2, [11]), 2, 1)
    assert dict(seen) == {"k=1": 0, "k=3": 1, "k=2": 0, "k=4": 0}


@pytest.mark.parametrize("buffer", [1, WHOLE])
def test_an_error_leaves_no_open_file_complete(buffer: int) -> None:
    folders = Folders()

    def broken() -> Iterator[pa.Table]:
        yield from tables([1, 2, 3, 1, 2, 3], [3])
        raise DataError("too large")

    with pytest.raises(DataError, match="too large"):
        write_in(folders, broken(), 2, buffer)
    assert folders.left_by_error == len(folders.rows)
    assert folders.open == 0
