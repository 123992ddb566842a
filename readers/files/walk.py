"""From a folder or a glob to what stands below it, each folder gone through once however many links lead to it.

A folder is gone through by its own names first, and links are followed when nothing else is left. So what lies in an
input is found under the path that is its own, and a link that leads to it adds nothing.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from ...windowing.errors import InputError, printable
from .entries import FILE, FOLDER, LEADS_NOWHERE, NOT_ALLOWED, Entry, all_below, entries, entry_at
from .file import Located
from .folder_values import folder_values

MANIFEST = "_wincli/manifest.json"
_EFFECTIVE = os.access in os.supports_effective_ids
_Rest = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Spot:
    """What stands at a path.

    ``real``: its path once no link is left in it. ``below``: its path below the one that was given, or below the fixed
    part of a glob. ``by_link``: whether a link leads from there to it.
    """

    place: Located
    entry: Entry
    real: str
    below: str
    by_link: bool = False

    def child(self, entry: Entry) -> Spot:
        """Return what stands under a name in this folder."""
        above, name = self.place, printable(entry.name)
        path = f"{above.path.rstrip('/')}/{entry.name}"
        shown = f"{above.shown.rstrip('/')}/{name}" if above.shown else name
        leads = entry.is_link and entry.kind in (FILE, FOLDER)
        real = os.path.realpath(path) if leads else f"{self.real.rstrip('/')}/{entry.name}"
        below = f"{self.below}/{name}" if self.below else name
        place = Located(above.fs, path, shown, entry.size, entry.mtime_ns)
        return Spot(place, entry, real, below, self.by_link or entry.is_link)

    def as_kind(self, kind: str) -> Spot:
        """Return it as something else than it looks like."""
        return replace(self, entry=replace(self.entry, kind=kind))

    def may_be_read(self) -> bool:
        """Whether the system lets it be read, as far as it says beforehand."""
        need = os.R_OK | (os.X_OK if self.entry.kind == FOLDER else 0)
        return not self.place.is_local or os.access(self.place.path, need, effective_ids=_EFFECTIVE)


@dataclass(slots=True)
class _Course:
    """What is still to be gone through, with what is left of a pattern to match below it."""

    own: deque[tuple[Spot, _Rest]] = field(default_factory=deque)
    links: deque[tuple[Spot, _Rest]] = field(default_factory=deque)
    seen: dict[tuple[str, _Rest], Spot] = field(default_factory=dict)

    def add(self, spot: Spot, rest: _Rest = ()) -> None:
        (self.links if spot.entry.is_link else self.own).append((spot, rest))

    def __iter__(self) -> Iterator[tuple[Spot, _Rest]]:
        while self.own or self.links:
            spot, rest = (self.own or self.links).popleft()
            first = self.seen.setdefault((spot.real, rest), spot)
            if first is spot:
                yield spot, rest
            else:
                check_values(first, spot)


def spot_at(place: Located) -> Spot | None:
    """Return what stands at a path that was given; None where nothing does. Raises `InputError`."""
    entry = entry_at(place)
    if entry is None:
        return None
    real = os.path.realpath(place.path) if place.is_local else place.path
    return Spot(replace(place, size=entry.size, mtime_ns=entry.mtime_ns), entry, real, "")


def walk(root: Spot) -> Iterator[Spot]:
    """Yield a file itself, or what lies below a folder: all that is no folder, but for hidden names.

    Of hidden ones only the manifests of results. A folder that may not be read comes as `NOT_ALLOWED`.
    """
    if root.entry.kind != FOLDER:
        yield root
    elif root.place.is_local:
        course = _Course()
        course.add(root)
        for folder, _ in course:
            yield from _folder(folder, course)
    else:
        yield from _store(root)


def _folder(folder: Spot, course: _Course) -> Iterator[Spot]:
    if not folder.may_be_read():
        yield folder.as_kind(NOT_ALLOWED)
        return
    for entry in entries(folder.place):
        if entry.name == "_wincli":
            yield from _manifest(folder)
        elif is_hidden(entry.name):
            continue
        elif entry.kind == FOLDER:
            course.add(folder.child(entry))
        else:
            yield folder.child(entry)


def _manifest(folder: Spot) -> Iterator[Spot]:
    place = Located(folder.place.fs, f"{folder.place.path}/{MANIFEST}", folder.place.shown)
    entry = entry_at(place)
    if entry is not None and entry.kind == FILE:
        yield folder.child(replace(entry, name=MANIFEST))


def _store(root: Spot) -> Iterator[Spot]:
    for below, entry in all_below(root.place):
        hidden = any(map(is_hidden, below.removesuffix(MANIFEST).split("/")))
        if entry.kind != FOLDER and not hidden:
            yield root.child(replace(entry, name=below))


def is_hidden(name: str) -> bool:
    """Whether a name is passed over in folders."""
    return name.startswith(("_", "."))


def matching(root: Spot, pattern: str) -> Iterator[Spot]:
    """Yield what a glob matches below a folder, name by name, once for each real file and folder.

    What may be a folder with matches in it and cannot be looked at comes, too.
    """
    course = _Course()
    course.add(root, tuple(pattern.split("/")))
    for spot, rest in course:
        if not rest:
            yield spot
        elif spot.entry.kind == FOLDER and spot.may_be_read():
            _match(spot, rest, course)
        else:
            yield spot.as_kind(NOT_ALLOWED) if spot.entry.kind == FOLDER else spot


def _match(folder: Spot, rest: _Rest, course: _Course) -> None:
    name = rest[0]
    if name == "**":
        course.add(folder, rest[1:])
    for entry in entries(folder.place):
        if _matches(entry, name, is_last=len(rest) == 1):
            course.add(folder.child(entry), rest if name == "**" else rest[1:])


def _matches(entry: Entry, name: str, *, is_last: bool) -> bool:
    if is_hidden(entry.name) and not name.startswith(entry.name[0]):
        return False
    may_be_folder = entry.kind in (FOLDER, LEADS_NOWHERE, NOT_ALLOWED)
    if not may_be_folder and (name == "**" or not is_last):
        return False
    return name == "**" or fnmatchcase(entry.name, name)


def check_values(first: Spot, again: Spot) -> None:
    """Raise `InputError` where one file or folder has two paths whose folders ``NAME=VALUE`` give other values."""
    is_loop = again.below.startswith(f"{first.below}/") or not first.below
    values = [folder_values(spot.below + "/" * (spot.entry.kind == FOLDER)) for spot in (first, again)]
    if values[1] and values[0] != values[1] and not is_loop:
        kind = "folder" if first.entry.kind == FOLDER else "file"
        what = f"{first.place.shown} and {again.place.shown} are one {kind}, and their folders give it other values"
        raise InputError(what, "take one of them away, or copy what it leads to")
