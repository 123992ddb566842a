"""Leases: locks in an object store. One run at a time holds a lease, and a lease whose run has died expires.

A lease keeps runs apart in good order; it is not what makes a commit safe. A run may be paused for longer than its
lease and wake up when another run holds it. So the law for all that runs do in a store:

- Names of data files are never reused, and a run deletes files of other runs only after a *fence*: it replaces the
  object with which these would commit (the manifest of an output, the journal of a state) by the same content with
  another ``fence``, under the condition that it has not changed since the list of files was made.
- A commit is a conditional put of that object, comparing the version that was read after the run took the lease.

Whoever lost the lease and whose files may be gone then fails to commit, because the version is another one.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any

from ...windowing.errors import OutputError
from ..folders.lock import Owner, is_dead
from ..folders.os_errors import output_errors
from ..folders.place import new_token
from .conditional import ConditionalStore, ConditionFailedError, Object, Version

SECONDS = 60.0
"""How long a lease holds without a heartbeat."""
_BEAT = SECONDS / 4


@dataclass(frozen=True, slots=True)
class Holder:
    """What the object of a lease says.

    ``owner``: the run.
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
        except (ValueError, KeyError, TypeError):
            return None


@contextmanager
def hold_lease(store: ConditionalStore, name: str, owner: Owner, shown: str, instead: str) -> Iterator[Owner | None]:
    """Hold a lease until the context ends; a thread renews it meanwhile.

    ``name``: the object. ``shown``: the output or state that it guards; ``instead``: what the user can do while another
    run holds it. The context value is the run whose lease was taken over, because it had expired or its process on this
    machine has ended; else None. Raises `OutputError` where another run holds the lease, or the store does not answer.
    """
    with output_errors(shown):
        former, version = _acquire(store, name, owner, shown, instead)
    stop = threading.Event()
    beats = threading.Thread(target=_renew, args=(store, name, owner, version, stop), daemon=True)
    beats.start()
    try:
        yield former
    finally:
        stop.set()
        beats.join()
        with suppress(OSError):  # it expires by itself
            if (now := holder_of(store, name)) is not None and now.owner == owner:
                store.delete([name])


def holder_of(store: ConditionalStore, name: str) -> Holder | None:
    """Return who holds a lease, expired or not; None where nobody does. Raises `OSError`."""
    found = store.get(name)
    return None if found is None else Holder.parse(found.content)


def lost_to(store: ConditionalStore, name: str, owner: Owner, shown: str) -> OutputError:
    """Return the error for a run whose commit was refused because another run has committed or fenced since."""
    with suppress(OSError):
        now = holder_of(store, name)
        if now is not None and now.owner != owner:
            what = (
                f"this run has lost {shown} to another one ({now.owner.describe(owner.started)}); nothing was written"
            )
            return OutputError(what, "run again when that run has ended")
    return OutputError(f"another run has written to {shown} since this one began; nothing was written", "run again")


def _acquire(
    store: ConditionalStore, name: str, owner: Owner, shown: str, instead: str
) -> tuple[Owner | None, Version]:
    found = store.get(name)
    former = None if found is None else _former(found, owner, shown, instead)
    try:
        content = _content(owner)
        version = store.create(name, content) if found is None else store.replace(name, content, found.version)
    except ConditionFailedError as error:
        now = holder_of(store, name)
        raise _busy(shown, owner, now.owner if now else None, instead) from error
    return former, version


def _former(found: Object, owner: Owner, shown: str, instead: str) -> Owner | None:
    """Return the dead run that has left a lease. Raises `OutputError` where it is alive."""
    holder = Holder.parse(found.content)
    if holder is None:  # damaged: nobody can renew it
        return None
    if time.time() < holder.expires and not is_dead(holder.owner, owner.host):
        raise _busy(shown, owner, holder.owner, instead)
    return holder.owner


def _renew(store: ConditionalStore, name: str, owner: Owner, version: Version, stop: threading.Event) -> None:
    """Renew a lease until it is lost or no longer needed; a store that fails now is asked again at the next beat."""
    while not stop.wait(_BEAT):
        try:
            version = store.replace(name, _content(owner), version)
        except ConditionFailedError:
            return
        except OSError:
            continue


def _content(owner: Owner) -> bytes:
    return Holder(owner, new_token(), time.time() + SECONDS).to_json()


def _busy(shown: str, owner: Owner, held: Owner | None, instead: str) -> OutputError:
    who = f" ({held.describe(owner.started)})" if held else ""
    what = f"another run is writing to {shown}{who}; nothing was written"
    return OutputError(what, f"wait for it to end, or {instead}; the lease of a dead run expires after {SECONDS:.0f} s")
