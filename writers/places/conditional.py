"""Small objects that are read and replaced by version: a put takes effect only if nobody has put another one since.

pyarrow has no conditional put, so these objects go through obstore (extra ``cloud``). All other data goes through
`pyarrow.fs`.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from ...windowing.errors import OutputError
from .lock import Owner, busy, is_dead
from .os_errors import output_errors
from .place import Place, new_token


class ConditionFailedError(Exception):
    """Somebody else has put the object, or there is one where there should be none."""


@dataclass(frozen=True, slots=True)
class Version:
    """The version of an object: its etag, and in some stores a number, such as the generation in Google's."""

    etag: str | None
    number: str | None = None


@dataclass(frozen=True, slots=True)
class Object:
    """An object as it was read, with the version to replace."""

    content: bytes
    version: Version


def version_of(found: Object | None) -> Version | None:
    """Return the version of an object that was read, None where there was none."""
    return None if found is None else found.version


class ConditionalStore(Protocol):
    """The objects below a folder of a store; names are relative to it. `open.open_store` makes it.

    All methods raise `OSError` where the store refuses or does not answer after several tries.
    """

    def get(self, name: str) -> Object | None:
        """Return an object, None where there is none."""

    def put(self, name: str, content: bytes) -> Version:
        """Put an object, whatever is there; return its version."""

    def put_if(self, name: str, content: bytes, version: Version | None) -> Version:
        """Replace the version of an object that was read, None: put one where there is none; return the new one.

        ``content`` must be unlike that of all other writers, so that an answer that got lost is not mistaken for a
        refusal. Raises `ConditionFailedError` where the object is another version or gone, or where there is one.
        """

    def list(self, beginning: str = "") -> dict[str, int]:
        """Return the sizes in bytes of all objects below a folder, by name; an empty text: below this store's own."""

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects; one that is not there is no error."""


# The probe of a store: does it refuse a put whose condition does not hold?
#
# Some stores and gateways ignore the condition. There two runs could both believe to have committed, so wincli writes
# nothing there.


_PROBED: dict[str, bool] = {}  # by bucket: whether it keeps conditions


def keeps_conditions(store: ConditionalStore, place: Place) -> bool:
    """Whether the store of an output does what `refuses_stale_puts` tries; tried once for each bucket.

    ``store``: the objects below the folder above the output. Raises `OSError` where the store does not answer.
    """
    bucket = f"{place.fs.type_name}://{place.path.partition('/')[0]}"
    if bucket not in _PROBED:
        beside = place.beside("gone", new_token()).rpartition("/")[2]
        _PROBED[bucket] = refuses_stale_puts(store, f"{beside}/probe")
    return _PROBED[bucket]


def refuses_stale_puts(store: ConditionalStore, beside: str) -> bool:
    """Whether a store keeps both conditions that commits need; costs six requests and leaves nothing.

    ``beside``: the begin of the name of the object that is tried. Raises `OSError` where the store does not answer.
    """
    name = f"{beside}-{new_token()}"
    try:
        first = store.put_if(name, b"first", None)
        with suppress(ConditionFailedError):
            store.put_if(name, b"second", None)
            return False
        store.put_if(name, b"third", first)
        with suppress(ConditionFailedError):
            store.put_if(name, b"fourth", first)
            return False
    except ConditionFailedError:  # it refuses what it must take
        return False
    finally:
        store.delete([name])
    return True


# Leases: locks in an object store. One run at a time holds a lease, and a lease whose run has died expires.
#
# A lease keeps runs apart in good order; it is not what makes a commit safe. A run may be paused for longer than its
# lease and wake up when another run holds it. So the law for all that runs do in a store:
#
# - Names of data files are never reused, and a run deletes files of other runs only after a *fence*: it replaces the
#   object with which these would commit (the manifest of an output, the journal of a state) by the same content with
#   another ``fence``, under the condition that it has not changed since the list of files was made.
# - A commit is a conditional put of that object, comparing the version that was read after the run took the lease.
#
# Whoever lost the lease and whose files may be gone then fails to commit, because the version is another one.


SECONDS = 60.0
"""How long a lease holds without a heartbeat."""
_BEAT = SECONDS / 4


@dataclass(frozen=True, slots=True)
class Holder:
    """What the object of a lease says.

    ``token``: makes each content unlike all others.
    ``expires``: until when the lease holds, in seconds since the epoch by the clock of its run.
    """

    owner: Owner
    token: str
    expires: float

    def to_json(self) -> bytes:
        """Return the content of the object."""
        return json.dumps({**asdict(self.owner), "token": self.token, "expires": self.expires}).encode()

    @classmethod
    def parse(cls, content: bytes) -> Holder | None:
        """Return what the content says, None where it is damaged."""
        try:
            value: dict[str, Any] = json.loads(content)
            owner = Owner(int(value["pid"]), str(value["host"]), str(value["started"]))
            return cls(owner, str(value["token"]), float(value["expires"]))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return None


@contextmanager
def hold_lease(store: ConditionalStore, name: str, owner: Owner, shown: str, instead: str) -> Iterator[Owner | None]:
    """Hold a lease until the context ends; a thread renews it meanwhile.

    ``name``: the object. ``shown``: the output or state that it guards; ``instead``: what the user can do while another
    run holds it. The context value is the run whose lease was taken over, because it had expired or its process on this
    machine has ended; else None. Raises `OutputError` where another run holds the lease, or the store does not answer.
    """
    do = f"wait for it to end, or {instead}; the lease of a dead run expires after {SECONDS:.0f} s"
    with output_errors(shown):
        found = store.get(name)
        # A damaged lease is as none: nobody can renew it.
        holder = None if found is None else Holder.parse(found.content)
        if holder is not None and time.time() < holder.expires and not is_dead(holder.owner, owner.host):
            raise busy(shown, owner, holder.owner, do)
        try:
            version = store.put_if(name, _content(owner), version_of(found))
        except ConditionFailedError as error:
            now = holder_of(store, name)
            raise busy(shown, owner, now.owner if now else None, do) from error
    stop = threading.Event()

    def renew(version: Version) -> None:
        while not stop.wait(_BEAT):
            try:
                version = store.put_if(name, _content(owner), version)
            except ConditionFailedError:  # it is lost
                return
            except OSError:  # a store that fails now is asked again at the next beat
                continue

    beats = threading.Thread(target=renew, args=(version,), daemon=True)
    beats.start()
    try:
        yield None if holder is None else holder.owner
    finally:
        stop.set()
        beats.join()
        with suppress(OSError):  # it expires by itself
            if is_held_by(store, name, owner):
                store.delete([name])


def holder_of(store: ConditionalStore, name: str) -> Holder | None:
    """Return who holds a lease, expired or not; None where nobody does. Raises `OSError`."""
    found = store.get(name)
    return None if found is None else Holder.parse(found.content)


def is_held_by(store: ConditionalStore, name: str, owner: Owner | None) -> bool:
    """Whether a lease is that of a run, expired or not. Raises `OSError`."""
    holder = holder_of(store, name)
    return holder is not None and holder.owner == owner


@dataclass(frozen=True, slots=True)
class CommitObject:
    """The one object that says which files of a store are a result, or the units of a state; its put is the commit.

    ``lease``: the lease of the output or of the state; ``shown``: these for messages.
    ``owner``: the run that commits; None for one that only reads.
    """

    store: ConditionalStore
    name: str
    lease: str
    shown: str
    owner: Owner | None = None

    def read(self) -> Object | None:
        """Return the object, None where there is none. Raises `OSError`."""
        return self.store.get(self.name)

    def put(self, content: bytes, version: Version | None) -> Version:
        """Replace the version that was read, None: there was none; return the new one.

        Raises `OutputError` where another run has put one since, `OSError` where nobody knows what has happened.
        """
        try:
            return self.store.put_if(self.name, content, version)
        except ConditionFailedError as error:
            raise self.lost() from error

    def is_held(self) -> bool:
        """Whether the lease is that of the run, expired or not. Raises `OSError`."""
        return is_held_by(self.store, self.lease, self.owner)

    def lost(self) -> OutputError:
        """Return the error for a run whose commit was refused because another run has committed or fenced since."""
        assert self.owner is not None
        with suppress(OSError):
            now = holder_of(self.store, self.lease)
            if now is not None and now.owner != self.owner:
                who = now.owner.describe(self.owner.started)
                what = f"this run has lost {self.shown} to another one ({who}); nothing was written"
                return OutputError(what, "run again when that run has ended")
        what = f"another run has written to {self.shown} since this one began; nothing was written"
        return OutputError(what, "run again")


def _content(owner: Owner) -> bytes:
    return Holder(owner, new_token(), time.time() + SECONDS).to_json()
