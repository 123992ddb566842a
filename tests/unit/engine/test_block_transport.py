"""Blobs go from the tasks that make them to those that scan them, by either way, and leave nothing behind."""

from __future__ import annotations

import mmap
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from wincli.windowing.engine.blocks import (
    BlockLocation,
    BlockRef,
    Fill,
    ShuffleBlock,
    open_blocks,
    read,
    release,
    through_files,
    through_shuffle,
    write,
)
from wincli.windowing.ports import ChunkAccount, Counts, Part
from wincli.windowing.rows.marks import NO_FILE, Marks, no_marks
from wincli.windowing.rows.sequence import build

PAGES = 5


def _fill(data: bytes, sink: pa.NativeFile) -> None:
    sink.write(data)


def _fills(*blobs: bytes) -> list[tuple[int, Fill]]:
    return [(index, partial(_fill, data)) for index, data in enumerate(blobs)]


def _texts(parcels: list[tuple[int, BlockRef]]) -> list[tuple[int, bytes]]:
    return [(index, open_blocks([parcel])[0].to_pybytes()) for index, parcel in parcels]


def test_a_block_reads_back_as_it_was() -> None:
    rows = pa.record_batch({"k": ["b", "a", "b"], "t": pa.array([5, 6, 7]), "x": ["p", None, "q"]})
    sequences = build(rows, np.array([10, 11, 12]), ["k"], ["t"], ["t", "x"])
    marks = Marks(pa.record_batch({"t": [5]}), np.array([10]), np.array([NO_FILE]))
    account = ChunkAccount(Counts(rows_in=3, rejected={"late": 1}), (Part("_rejected/part-00000.parquet", 1, 99),))
    sink = pa.BufferOutputStream()
    write(ShuffleBlock(4, sequences, marks, np.arange(len(marks)), 7, account), 10, sink)
    found = read(sink.getvalue())
    assert (found.chunk, found.clock, found.account) == (4, 7, account)
    assert found.sequences.keys is not None
    assert found.sequences.keys.equals(sequences.keys)
    assert found.sequences.rows.to_pylist() == [{"t": 6, "x": None}, {"t": 5, "x": "p"}, {"t": 7, "x": "q"}]
    assert found.sequences.pos.tolist() == [11, 10, 12]
    assert found.sequences.bounds.tolist() == [0, 1, 3]
    assert found.marks.rows.to_pylist() == [{"t": 5}]


def test_both_ways_bring_the_same(tmp_path: Path) -> None:
    blobs = [b"one", b"", b"x" * mmap.PAGESIZE, b"y" * (mmap.PAGESIZE + 1), b"last"]
    in_files = [part for half in (blobs[:2], blobs[2:]) for part in through_files([str(tmp_path)], _fills(*half))]
    assert [data for _, data in _texts(in_files)] == blobs
    assert _texts(list(through_shuffle(_fills(*blobs)))) == list(enumerate(blobs))
    assert len(list(tmp_path.iterdir())) == 2
    assert {type(parcel) for _, parcel in in_files} == {BlockLocation}  # Spark transports no more than that
    assert {type(parcel) for _, parcel in through_shuffle(_fills(b"a", b"b"))} == {pa.Buffer}
    release([pa.py_buffer(b"nobody's to give back")])


@pytest.mark.skipif(not hasattr(mmap, "MADV_REMOVE"), reason="the system cannot free a part of a file")
def test_what_is_given_back_takes_no_room_and_leaves_its_neighbours(tmp_path: Path) -> None:
    size = PAGES * mmap.PAGESIZE
    parcels = [
        parcel for _, parcel in through_files([str(tmp_path)], _fills(b"a" * size, b"b" * (size - 1), b"c" * size))
    ]
    (file,) = tmp_path.iterdir()
    before = file.stat().st_blocks
    release([parcels[1]])
    assert (before - file.stat().st_blocks) * 512 == size
    first, second, third = (buffer.to_pybytes() for buffer in open_blocks(parcels))
    assert (set(first), set(second), set(third)) == ({ord("a")}, {0}, {ord("c")})


@pytest.mark.skipif(not hasattr(mmap, "MADV_REMOVE"), reason="the system cannot free a part of a file")
def test_a_blob_that_is_given_back_is_never_taken_for_one(tmp_path: Path) -> None:
    rows = pa.record_batch({"k": ["a"] * 9, "t": list(range(9))})
    sequences = build(rows, pa.array(range(9)).to_numpy(), ["k"], ["t"], ["t"])
    marks = no_marks(rows.slice(0, 0), ["t"])
    blob = ShuffleBlock(0, sequences, marks, marks.pos, None, None)
    ((_, parcel),) = through_files([str(tmp_path)], [(0, partial(write, blob, 0))])
    assert len(read(open_blocks([parcel])[0]).sequences) == 9
    release([parcel])
    with pytest.raises(pa.ArrowInvalid):
        read(open_blocks([parcel])[0])


def test_files_are_spread_over_all_disks(tmp_path: Path) -> None:
    disks = [tmp_path / name for name in "ab"]
    for disk in disks:
        disk.mkdir()
    for _ in range(64):
        list(through_files([str(disk) for disk in disks], _fills(b"x")))
    assert all(len(list(disk.iterdir())) > 8 for disk in disks)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the system does not tell what is open")
def test_no_file_stays_open_while_its_blobs_are_looked_at(tmp_path: Path) -> None:
    parcels = [parcel for _ in range(20) for _, parcel in through_files([str(tmp_path)], _fills(b"x", b"y"))]
    before = len(list(Path("/proc/self/fd").iterdir()))
    blobs = open_blocks(parcels)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert b"".join(blob.to_pybytes() for blob in blobs) == b"xy" * 20
