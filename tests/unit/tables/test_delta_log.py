"""A Delta table is opened while another program commits to it."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from wincli.windowing.tables.delta_library import LOG, open_table


def test_files_that_come_and_go_in_the_log_are_no_trouble(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1]}))
    ended = threading.Event()

    def commit() -> None:
        while not ended.is_set():
            for name in ("00000000000000000009.json#1", "_commit_1.json.tmp", "_commit_2.json"):
                (tmp_path / LOG / name).write_text("{}")
                (tmp_path / LOG / name).unlink()

    other = threading.Thread(target=commit)
    other.start()
    try:
        assert {open_table(str(tmp_path)).version() for _ in range(200)} == {0}
    finally:
        ended.set()
        other.join()
