"""The table of file formats: complete, without contradictions, and known to every reader and encoder that it names."""

from __future__ import annotations

from typing import get_args

import pytest

from wincli.conf.job import Job
from wincli.readers.formats.csv import CsvReader
from wincli.windowing.support.formats import FORMATS, SUFFIXES, Format, format_of_bytes, load
from wincli.writers.formats.encoder import Encoder, encoder_of


def test_every_format_is_in_the_table_once_and_no_two_share_a_suffix_or_first_bytes() -> None:
    assert tuple(FORMATS) == get_args(Format)
    assert len(SUFFIXES) == sum(len(form.suffixes) for form in FORMATS.values())
    assert all(suffix == suffix.lower() and suffix.startswith(".") for suffix in SUFFIXES)
    firsts = [first for form in FORMATS.values() for first in form.first_bytes]
    assert len(set(firsts)) == len(firsts)


@pytest.mark.parametrize("name", FORMATS)
def test_the_reader_the_encoder_and_the_options_of_a_format_exist(name: Format) -> None:
    form = FORMATS[name]
    assert callable(load(form.reader).plan_input)
    assert form.is_text or callable(load(form.reader).column_names)
    assert isinstance(encoder_of(name), Encoder)
    assert f".{name}" in form.suffixes, "a part file is named by its format, and found by its suffix"
    for option in form.options:
        assert (Job.model_fields[option].description or "").startswith(f"{form.title}: ")


def test_the_options_of_csv_are_those_of_its_reader() -> None:
    assert set(FORMATS["csv"].options) == set(CsvReader.__dataclass_fields__) - {"typed", "columnar"}


@pytest.mark.parametrize(
    ("first", "name"),
    [
        (b"PAR1\x15\x04", "parquet"),
        (b"ORC\x00", "orc"),
        (b'  \n{"a": 1}', "jsonl"),
        (b"\xef\xbb\xbf[1]", "jsonl"),
        (b" PAR1,b\n", "csv"),
        (b"a,b\n1,2\n", "csv"),
        (b"", "csv"),
    ],
)
def test_a_format_is_known_by_its_first_bytes(first: bytes, name: Format) -> None:
    assert format_of_bytes(first) == name
