"""Random joins by the command line, night after night: together they are what the reference says of one run."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given

from support.join_nights import Nights, nights_of_joins
from support.strategies import examples


@given(nights_of_joins())
@examples(300)
def test_nights_are_one_run(nights: Nights) -> None:
    with tempfile.TemporaryDirectory() as folder:
        nights.check(Path(folder))
