"""Files that count their rows in several places, and not alike: no row is passed over in silence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from support.parquet_footers import COLUMN_META, COLUMNS, GROUP_ROWS, NUM_ROWS, NUM_VALUES, ROW_GROUPS, Message, edit
from support.readers import read_all, source
from wincli.windowing.errors import InputError


def less(message: Message, field: int) -> None:
    kind, value = message[field]
    message[field] = kind, value - 1


def last_group(footer: Message) -> Message:
    found: Message = footer[ROW_GROUPS][1][1][-1]
    return found


def fewer_in_the_file(footer: Message) -> None:
    less(footer, NUM_ROWS)


def fewer_in_a_group(footer: Message) -> None:
    less(last_group(footer), GROUP_ROWS)


def fewer_in_both(footer: Message) -> None:
    fewer_in_the_file(footer)
    fewer_in_a_group(footer)


def fewer_in_a_column(footer: Message) -> None:
    less(last_group(footer)[COLUMNS][1][1][-1][COLUMN_META][1], NUM_VALUES)


def group_left_out(footer: Message) -> None:
    footer[ROW_GROUPS][1][1].pop()


def group_twice(footer: Message) -> None:
    groups = footer[ROW_GROUPS][1][1]
    groups[1] = groups[0]


CHANGES = (fewer_in_the_file, fewer_in_a_group, fewer_in_both, fewer_in_a_column, group_left_out, group_twice)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("nested", [False, True])
def test_parquet_whose_footer_contradicts_itself_is_damaged(
    tmp_path: Path, change: Callable[[Message], None], nested: bool
) -> None:
    columns = {"items": [[1, 2]] * 20} if nested else {}
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({**columns, "n": list(range(20))}), path, row_group_size=10)
    edit(path, lambda _: None)
    assert len(read_all(source(path)).rows) == 20
    edit(path, change)
    with pytest.raises(InputError, match=r"a.parquet is damaged: .*, and "):
        source(path)


def test_orc_whose_footer_contradicts_itself_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.orc"
    orc.write_table(pa.table({"n": list(range(20))}), path)
    assert len(read_all(source(path)).rows) == 20
    monkeypatch.setattr("wincli.readers.formats.orc._groups", lambda _tail: [(19, 100)])
    with pytest.raises(InputError, match=r"a.orc is damaged: its footer names 20 rows, and its stripes have 19"):
        source(path)
