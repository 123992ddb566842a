"""Footers of many files: in threads where they are waited for, in this thread else, and in order in both."""

import threading
import time

import pyarrow as pa
import pytest
from pyarrow.fs import LocalFileSystem

from wincli.readers.files.file import Located
from wincli.readers.files.walk import ListedFile
from wincli.readers.formats.columnar import Footer, plan_footers
from wincli.windowing.errors import InputError

FILES = [
    ListedFile(
        Located(LocalFileSystem(), f"/log/{number}.parquet", f"/log/{number}.parquet"), 10, None, f"{number}.parquet"
    )
    for number in range(300)
]
SCHEMA = pa.schema([("x", pa.int64())])


class Disk:
    """Reads footers: a file of number n has n + 1 rows. ``wait``: seconds for each. ``bad``: one that fails."""

    def __init__(self, wait, bad=None):
        self.wait, self.bad, self.threads = wait, bad, set()

    def footer(self, place):
        self.threads.add(threading.get_ident())
        time.sleep(self.wait)
        number = int(place.shown.rpartition("/")[2].removesuffix(".parquet"))
        if number == self.bad:
            raise InputError(f"{place.shown} is broken")
        return Footer(SCHEMA, ((number + 1, 8 * number),))


def test_files_that_are_waited_for_are_read_in_threads_with_the_same_splits():
    slow, fast = Disk(0.002), Disk(0)
    plans = [plan_footers(FILES, 1 << 20, disk.footer) for disk in (slow, fast)]
    assert len(slow.threads) > 1
    assert list(plans[0].splits) == list(plans[1].splits)
    assert [split.rows for split in plans[0].splits] == list(range(1, 301))


@pytest.mark.parametrize("bad", [0, 3, 250])
@pytest.mark.parametrize("wait", [0, 0.002])
def test_a_footer_that_fails_names_its_file(wait, bad):
    with pytest.raises(InputError, match=f"/log/{bad}.parquet is broken"):
        plan_footers(FILES, 1 << 20, Disk(wait, bad).footer)
