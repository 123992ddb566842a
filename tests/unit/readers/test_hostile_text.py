"""Text files that no log has: records without an end, and a name of its own in each line. Memory stays bounded."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.places import ROOT, TESTS
from support.readers import read_all, source
from wincli.readers.files.byte_ranges import MAX_RECORD
from wincli.readers.formats import jsonl
from wincli.windowing.errors import InputError

LINES = {"csv": b"1,%b\n", "jsonl": b'{"ts":1,"x":"%b"}\n'}
HEADS = {"csv": b"ts,x\n", "jsonl": b""}


@pytest.mark.parametrize("is_small", [False, True])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.csv.gz", "a.jsonl.gz"])
def test_record_longer_than_the_limit_is_an_error_and_a_shorter_one_is_read(
    tmp_path: Path, name: str, is_small: bool
) -> None:
    form = name.split(".")[1]
    letters = MAX_RECORD - 64 if is_small else MAX_RECORD + (2 << 20)
    content = HEADS[form] + b"".join(LINES[form] % (b"x" * n) for n in (1, letters, 1))
    path = tmp_path / name
    path.write_bytes(gzip.compress(content, 1) if name.endswith(".gz") else content)
    if is_small:
        assert [len(row["x"]) for row in read_all(source(path)).rows] == [1, letters, 1]
        return
    with pytest.raises(InputError, match=rf"{name} has a record longer than 16 MiB"):
        read_all(source(path))


NAMES = """
import resource, sys
from support.readers import source

peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
source(sys.argv[1])
before = peak()
print(*(len(source(path).schema) for path in sys.argv[2:]))
print(peak() - before >> 10)
"""


def test_names_that_are_values_take_no_memory_for_each_row(tmp_path: Path) -> None:
    """3,000 names in as many lines are 9 million cells, nearly all null: 0.5 GiB where each was made."""
    paths = [tmp_path / "small.jsonl"]
    paths[0].write_text('{"ts":1}\n')
    for kind, line in enumerate(('{"ts":1,"n%d":1}', '{"ts":1,"m":{"n%d":1}}', '{"ts":1,"n%d":"\\u0041"}')):
        paths.append(tmp_path / f"{kind}.jsonl")
        paths[-1].write_text("".join(line % number + "\n" for number in range(3000)))
    env = {**os.environ, "PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-c", NAMES, *map(str, paths)]
    done = subprocess.run(command, env=env, cwd=ROOT, text=True, capture_output=True, check=True)
    names, mib = done.stdout.splitlines()
    assert names == "3001 2 3001"
    assert int(mib) < 250


@pytest.mark.parametrize("line", ['{"n%d":1}', '{"m":{"n%d":1}}'])
def test_more_names_than_any_table_has_are_an_error(tmp_path: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert jsonl._MOST_NAMES == 20_000
    monkeypatch.setattr(jsonl, "_MOST_NAMES", 2_000)
    path = tmp_path / "a.jsonl"
    for names in (2_000, 2_001):
        path.write_text("".join(line % number + "\n" for number in range(names)))
        if names == 2_000:
            source(path)
    with pytest.raises(InputError, match=r"a.jsonl has more than 2,000 different names .* are they values\?"):
        source(path)


def test_rows_of_columns_that_most_rows_lack_are_refused_where_nulls_would_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "_MOST_CELLS", 1 << 20)
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"n{number}":1}}\n' for number in range(1_100)))
    with pytest.raises(InputError, match=r"1,100 rows of 1,100 columns are more than 1,048,576 values.*--split-size"):
        read_all(source(path))
