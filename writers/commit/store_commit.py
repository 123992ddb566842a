"""A result on its way into a store: parts under names of its run, and one conditional put of the manifest.

Parts stand in the folder of the output from the moment they are written. Readers that follow the manifest do not see
them before `StoreCommit.publish` has put the manifest that names them, and do not see those of the former result after.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from ...windowing.errors import OutputError
from ...windowing.support.addresses.commit_object import begun
from ...windowing.support.checksum import read_object, seal
from ..folders.os_errors import output_errors
from ..folders.place import MANIFEST, SUCCESS, has_no_folders
from ..stores.conditional import ConditionFailedError, Version
from .contract import Progress
from .store_objects import StoreObjects, check_files, files_of, has_result, parse, run_of

_PREPARED = "manifest.json"
_UPLOADED = 5 << 20  # bytes from which a file may be uploaded in parts


@dataclass(frozen=True, slots=True)
class Prepared:
    """A result that only has to be published.

    ``base``: the version of the manifest that it replaces; None: there was none.
    ``content``: the manifest.
    """

    base: Version | None
    content: bytes

    def to_json(self) -> bytes:
        """Return the text that is stored beside the output until the result is published."""
        base = None if self.base is None else asdict(self.base)
        return json.dumps({"base": base, "manifest": self.content.decode()}).encode()

    @classmethod
    def parse(cls, text: bytes) -> Prepared | None:
        """Return what the text says, None where it is damaged."""
        try:
            value = read_object(text)
            base = None if value["base"] is None else Version(**value["base"])
            return cls(base, str(value["manifest"]).encode())
        except (ValueError, KeyError, TypeError):
            return None


@dataclass(slots=True)
class StoreCommit:
    """A `TableCommit` whose parts stay where tasks write them.

    ``objects``: the objects of the output.
    ``token``: the id of the staging folder, which the names of its parts carry.
    ``base``: the version of the manifest that it replaces, known from `open` on; None: there is none.
    """

    objects: StoreObjects
    token: str
    base: Version | None = None

    @property
    def staging(self) -> str:
        """The folder beside the output for files that only this run reads."""
        return self.objects.place.beside("new", self.token)

    @property
    def data(self) -> str:
        """The folder of the output."""
        return self.objects.place.path

    @property
    def suffix(self) -> str:
        """The id of the staging folder."""
        return f"-{self.token}"

    def open(self) -> None:
        """Note which version of the manifest is to be replaced; no other may have come when this run publishes."""
        self.objects.own.add(self.token)
        now = self.objects.read()
        self.base = None if now is None else now.version
        files = self.objects.place.fs
        if not has_no_folders(files):
            files.create_dir(self.data, recursive=True)
            files.create_dir(self.staging, recursive=False)

    def begin(self) -> None:
        """Tell readers that follow the manifest, where there is none, that parts without one are no result."""
        objects = self.objects
        now = objects.read()
        if now is None or not has_result(now.content):
            try:
                self.base = objects.put_if(begun(self.token), self.base)
            except ConditionFailedError as error:
                raise self.objects.lost() from error

    def prepare(self, manifest: Mapping[str, Any]) -> None:
        """Check the parts, and put the manifest beside the output, from where a journal can publish it.

        Attempts at tasks that were ended, or were not the first, leave files that the manifest does not name.
        """
        objects, shown = self.objects, self.objects.place.shown
        with output_errors(f"{shown}/{MANIFEST}"):
            there, named = objects.files(), set(files_of(manifest))
            self._check(there, manifest)
            objects.delete([objects.of_output(n) for n in there if run_of(n) == self.token and n not in named])
            objects.may_have_uploads |= any(there[name] >= _UPLOADED for name in named)
            text = json.dumps(seal(manifest), indent=2, ensure_ascii=False).encode() + b"\n"
            objects.store.put(self._prepared_name, Prepared(self.base, text).to_json())

    def publish(self) -> None:
        """Put the manifest if nobody has put another since `open`; then delete what it has replaced.

        Raises `OutputError` where another run has published or has taken the output over.
        """
        prepared, now = self._prepared(), self.objects.read()
        version = None if now is None else now.version
        if prepared is None or prepared.base != version:
            raise self.objects.lost()
        self.objects.tried.add(self.token)
        try:
            self.objects.put_if(prepared.content, prepared.base)
        except ConditionFailedError as error:
            raise self.objects.lost() from error
        except OSError:
            if not self._is_published(prepared):
                raise
        with suppress(OSError):  # `StoreTable.remove_leftovers` tries again
            self._tidy(now.content if now else b"", prepared)

    def progress(self, run: str) -> Progress:
        """Return how far the result has come."""
        now = self.objects.read()
        if now is not None and (parse(now.content) or {}).get("run") == run:
            return Progress.PUBLISHED
        prepared = self._prepared()
        if prepared is None or prepared.base != (None if now is None else now.version):
            return Progress.GONE
        return Progress.READY if (parse(prepared.content) or {}).get("run") == run else Progress.GONE

    def recover(self, run: str) -> None:
        """Publish the result, if that is what is left to do."""
        if self.progress(run) is Progress.READY:
            self.publish()

    @property
    def _prepared_name(self) -> str:
        return self.objects.beside("new", self.token, _PREPARED)

    def _prepared(self) -> Prepared | None:
        found = self.objects.store.get(self._prepared_name) if self.token else None
        return None if found is None else Prepared.parse(found.content)

    def _check(self, there: Mapping[str, int], manifest: Mapping[str, Any]) -> None:
        try:
            check_files(self.objects.place.shown, there, manifest)
        except OutputError as error:
            now = self.objects.read()
            if (None if now is None else now.version) != self.base:  # who took the output over has deleted the parts
                raise self.objects.lost() from error
            raise

    def _is_published(self, prepared: Prepared) -> bool:
        """Whether a put whose answer got lost has taken effect; False where the store does not say that."""
        with suppress(OSError):
            now = self.objects.read()
            return now is not None and now.content == prepared.content
        return False

    def _tidy(self, former: bytes, prepared: Prepared) -> None:
        """Mark the result as complete for readers of the folder, and delete the former one and the staging folder."""
        objects = self.objects
        objects.store.put(objects.of_output(SUCCESS), b"")
        kept = set(files_of(parse(prepared.content) or {}))
        gone = [objects.of_output(name) for name in files_of(parse(former) or {}) if name not in kept]
        objects.delete([*gone, *objects.files_beside("new", self.token)])
