"""Rows in any order of folders become one file for each folder, with few files open and little in memory."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wincli.windowing.errors import DataError
from wincli.writers.formats.encoder import Write
from wincli.writers.output.partitioning import folders_of, write_folders

SCHEMA = pa.schema([("n", pa.int64()), ("label", pa.string())])


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
            assert table.column_names == SCHEMA.names
            assert [f"{n}" for n in table["n"].to_pylist()] == table["label"].cast(pa.string()).to_pylist()
            self.rows[folder] += table["n"].to_pylist()

        try:
            yield write
        except BaseException:
            self.left_by_error += 1
            raise
        finally:
            self.open -= 1


def tables(keys: list[int], sizes: list[int], with_dictionary: bool) -> list[pa.Table]:
    label = pa.array([f"{n}" for n in range(len(keys))])
    rows = pa.table(
        {"k": keys, "n": range(len(keys)), "label": label.dictionary_encode() if with_dictionary else label}
    )
    cuts = [0, *np.cumsum(sizes).tolist()]
    return [rows.slice(low, size) for low, size in zip(cuts, [*sizes, len(keys)], strict=True)]


def written(keys: list[int], sizes: list[int], most_open: int, buffer: int, with_dictionary: bool) -> Folders:
    folders = Folders()
    counts = write_folders(
        tables(keys, sizes, with_dictionary),
        lambda rows: folders_of(["k"], [rows["k"]]),
        SCHEMA,
        folders.file,
        tempfile.TemporaryFile,
        most_open,
        buffer,
    )
    assert counts == {folder: len(rows) for folder, rows in folders.rows.items()}
    return folders


@given(
    st.lists(st.integers(0, 12), max_size=60),
    st.lists(st.integers(0, 9), max_size=9),
    st.integers(1, 5),
    st.sampled_from([1, 60, 400, 1 << 30]),
    st.booleans(),
)
def test_each_folder_gets_its_rows_in_their_order_and_few_files_are_open(
    keys: list[int], sizes: list[int], most_open: int, buffer: int, with_dictionary: bool
) -> None:
    folders = written(keys, sizes, most_open, buffer, with_dictionary)
    expected: dict[str, list[int]] = {}
    for n, key in enumerate(keys):
        expected.setdefault(f"k={key}", []).append(n)
    assert folders.rows == expected
    assert folders.most_open <= most_open
    assert folders.open == 0


def test_rows_that_fit_into_the_buffer_are_written_with_one_file_open() -> None:
    assert written(list(range(50)) * 3, [20, 20], 100, 1 << 30, with_dictionary=False).most_open == 1


def test_of_rows_that_do_not_fit_the_largest_folders_stay_open() -> None:
    seen = Counter[str]()

    class Spilled(Folders):
        @contextmanager
        def file(self, folder: str) -> Iterator[Write]:
            seen[folder] = self.open
            with super().file(folder) as write:
                yield write

    folders = Spilled()
    keys = [1] * 5 + [2] + [3] * 4 + [4]
    write_folders(
        tables(keys * 2, [11], with_dictionary=False),
        lambda rows: folders_of(["k"], [rows["k"]]),
        SCHEMA, folders.file, tempfile.TemporaryFile, 2, 1,
    )  # fmt: skip
    assert dict(seen) == {"k=1": 0, "k=3": 1, "k=2": 0, "k=4": 0}


@pytest.mark.parametrize("buffer", [1, 1 << 30])
def test_an_error_leaves_no_open_file_complete(buffer: int) -> None:
    folders = Folders()

    def broken() -> Iterator[pa.Table]:
        yield from tables([1, 2, 3, 1, 2, 3], [3], with_dictionary=False)
        raise DataError("too large")

    with pytest.raises(DataError, match="too large"):
        write_folders(
            broken(),
            lambda rows: folders_of(["k"], [rows["k"]]),
            SCHEMA,
            folders.file,
            tempfile.TemporaryFile,
            2,
            buffer,
        )
    assert folders.left_by_error == len(folders.rows)
    assert folders.open == 0
