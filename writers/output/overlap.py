"""Refuse an output that overlaps an input, another output or another result.

A run must not read what it writes, and who reads a result must not read another one with it.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Literal

from pyarrow import fs

from ...windowing.errors import ConfigError, InputError, OutputError
from ...windowing.tables.iceberg.address import is_address
from ..commit.tables import table_of
from ..folders.globs import fixed_part, globbed, holds, is_glob, is_within
from ..folders.os_errors import reason
from ..folders.place import MANIFEST, Place, is_local, resolve

_REMEDY = {"output": "choose an output folder apart from the {}s", "state": "choose a state folder apart from the {}s"}
_DEEPEST = 8
_MOST = 100
_REMEDY_EACH = "give each stage an output folder of its own"


def refuse_overlap(
    out: Place, inputs: Sequence[str], what: str = "input", role: Literal["output", "state"] = "output"
) -> None:
    """Raise `ConfigError` naming both where ``out`` is equal to, inside or around one of ``inputs``.

    ``what``: the word for one of them, such as ``enrich table``; ``role``: that for ``out``. Inputs are files, folders
    or globs (``*``, ``?``, ``[..]``, ``**``), as paths or URIs. The output is inside a glob if the glob matches the
    output or a folder that contains it; ``**`` contains everything below the folder before it.
    The output is around a glob if it contains the part before the first wildcard or, on a local file system, any match.
    Raises `InputError` where the file system of an input cannot be reached.
    """
    do = _REMEDY[role].format(what)
    for text in inputs:
        try:
            system, path = _resolve_input(text)
        except OutputError as error:  # of a catalog
            raise InputError(error.what, error.do) from error
        except OSError as error:
            raise InputError(f"cannot reach the {what} {text}: {reason(error)}") from error
        if not _is_same(system, out.fs):
            continue
        if path == out.path:
            raise ConfigError(f"{role} {out.shown} is the {what} {text} itself", do)
        if holds(path, out.path):
            raise ConfigError(f"{role} {out.shown} is inside the {what} {text}", do)
        found = (os.path.realpath(match) for match in _matches(out, path))
        if is_within(fixed_part(path), out.path) or any(is_within(each, out.path) for each in found):
            raise ConfigError(f"{role} {out.shown} contains the {what} {text}", do)


def refuse_each_other(outputs: Sequence[str]) -> None:
    """Raise `ConfigError` naming two outputs of a job that are one folder, or of which one is inside the other."""
    groups: list[tuple[fs.FileSystem, dict[str, Place]]] = []
    for place in (table_of(path).place for path in outputs):
        there = next((group for system, group in groups if _is_same(system, place.fs)), None)
        if there is None:
            there = {}
            groups.append((place.fs, there))
        elif (other := there.get(place.path)) is not None:
            raise ConfigError(f"{other.shown} and {place.shown} are the same output, of two stages", _REMEDY_EACH)
        there[place.path] = place
    for _, there in groups:
        for path, place in there.items():
            names = path.split("/")
            above = ("/".join(names[:depth]) for depth in range(1, len(names)))
            if other := next((there[folder] for folder in above if folder in there), None):
                raise ConfigError(f"output {place.shown} is inside output {other.shown}", _REMEDY_EACH)


def refuse_inside_result(out: Place) -> None:
    """Raise `ConfigError` where a folder above an output holds a result: who reads that would read both.

    So units of a range never get beside the parts of a plain result. What a user may not look at above an output is not
    looked at.
    """
    names = out.path.split("/")
    above = ["/".join(names[:depth]) for depth in range(len(names) - 1, 0, -1)]
    with suppress(OSError):
        for folder, info in zip(above, out.fs.get_file_info([f"{each}/{MANIFEST}" for each in above]), strict=True):
            if info.type == fs.FileType.File:
                below = out.path.removeprefix(folder)
                shown = out.shown.removesuffix(below) if out.shown.endswith(below) else folder
                what = f"output {out.shown} is inside {shown}, which holds a result of its own: who reads {shown} would"
                raise ConfigError(
                    f"{what} read both; nothing was touched", f"choose another output, or move {shown} away"
                )


def result_below(out: Place) -> str | None:
    """Return the path, relative to an output, of a folder in it that holds a result; None where none is found.

    Units of a range are such folders, as deep as ``{date}`` puts them. Of each level at most a hundred folders are
    looked at, and only the first is descended into, so that a large folder costs no more than a small one.
    """
    folder = out.path
    for _ in range(_DEEPEST):
        infos = out.fs.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        inner = sorted(info.path for info in infos if info.type == fs.FileType.Directory)
        inner = [path for path in inner if not path.rpartition("/")[2].startswith(("_", "."))][:_MOST]
        if not inner:
            return None
        found = out.fs.get_file_info([posixpath.dirname(f"{path}/{MANIFEST}") for path in inner])
        for path, info in zip(inner, found, strict=True):
            if info.type == fs.FileType.Directory:  # in a table by version its manifest has another name
                return path.removeprefix(f"{out.path}/")
        folder = inner[0]
    return None


def are_nested(one: Place, other: Place) -> bool:
    """Whether two places are one folder, or one is inside the other."""
    return _is_same(one.fs, other.fs) and (is_within(one.path, other.path) or is_within(other.path, one.path))


def _is_same(one: fs.FileSystem, other: fs.FileSystem) -> bool:
    return type(one) is type(other) and bool(one.equals(other))


def _resolve_input(text: str) -> tuple[fs.FileSystem, str]:
    if is_address(text):
        place = table_of(text).place
        return place.fs, place.path
    if "://" in text or not is_glob(text):
        return resolve(text)
    head = fixed_part(text)
    system, base = resolve(head or ("/" if text.startswith("/") else "."))
    return system, posixpath.join(base, text[len(head) :].lstrip("/"))


def _matches(out: Place, path: str) -> Iterator[str]:
    return globbed(path) if is_local(out.fs) and is_glob(path) else iter(())
