"""The world that an attack finds: inputs, a job, two results, a range on a state, a stranger's file; and what held."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

DELTA = ("--window", "delta(ts,60)", "--key", "user")
RANGE = ("--start", "2026-01-01", "--end", "2026-01-04")
DAYS = (*DELTA, "--agg", "sum(amount)", "--schema", "ts:timestamp", "days/dt={date}", "range/dt={date}")
ON_STATE = (*DAYS, "--state", "st", *RANGE)
SECRET = "hunter2hunter2"
GIB = 1 << 30
_TRACES = re.compile(r"Traceback \(most recent|unexpected [A-Z]\w+(Error|Exception)|Error: .*at 0x|Segmentation")
_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2028\u2029\u2066-\u2069]")
_CODES = (0, 2, 3, 4)  # of a run that is well, of a user's mistake, of files and of data
_SECONDS = 90


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, stdout and stderr, and the seconds it took."""

    code: int
    out: str
    err: str
    seconds: float


@dataclass(frozen=True)
class World:
    """The folder of one attack. ``program``: the wincli to attack."""

    folder: Path
    program: str

    def copy(self, template: Path) -> None:
        """Copy the world; its links stay links."""
        shutil.copytree(template, self.folder, symlinks=True)

    def remove(self) -> None:
        """Remove it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, name: str) -> Path:
        """Return the path of something in it."""
        return self.folder / name

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file of it, and its folders."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)
        return path

    def wincli(
        self, *words: str, secret: str | None = None, memory: int = 0, env: Mapping[str, str] | None = None
    ) -> Ended:
        """Run wincli, and check what holds for each command. ``memory``: bytes of each of its processes, 0 for any."""
        began = time.monotonic()
        found = dict(os.environ) | {"TMPDIR": str(self._temporary())} | dict(env or {})
        process = subprocess.Popen(
            [self.program, *words],
            cwd=self.folder,
            env=found,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        watch = threading.Thread(target=_end_large, args=(process, memory)) if memory else None
        if watch is not None:
            watch.start()
        try:
            out, err = (text.decode("utf-8", "replace") for text in process.communicate(timeout=_SECONDS))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise AssertionError(f"no end in {_SECONDS} s: {' '.join(words)}") from None
        assert process.returncode != -signal.SIGKILL, f"more than {memory >> 20} MiB: {' '.join(words)}"
        ended = Ended(process.returncode, out, err, time.monotonic() - began)
        told = f"{' '.join(words)!r} ended with {ended.code}: {(out + err)[-300:]!r}"
        assert not _TRACES.search(out + err), f"a trace: {told}"
        assert ended.code in _CODES, f"the code: {told}"
        assert not (bad := _CONTROLS.search(out + err)), f"the character {bad and bad[0]!r}: {told}"
        assert secret is None or secret not in out + err, f"the secret: {told}"
        return ended

    def refuses(self, *words: str, secret: str | None = None) -> Ended:
        """Run wincli, which must end with an error."""
        ended = self.wincli(*words, secret=secret)
        assert ended.code != 0, f"accepted: {' '.join(words)!r}: {ended.err[-300:]!r}"
        return ended

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start wincli in a group of its own, and go on."""
        env = dict(os.environ) | {"TMPDIR": str(self._temporary())}
        null = subprocess.DEVNULL
        return subprocess.Popen(
            [self.program, *words], cwd=self.folder, env=env, stdin=null, stdout=null, stderr=null,
            start_new_session=True,
        )  # fmt: skip

    def wait_until_alone(self) -> None:
        """Wait until no process runs in the world: the Java of a killed run takes a moment to see that it is alone."""
        deadline = time.monotonic() + _SECONDS
        while any(self._is_here(each) for each in psutil.process_iter()) and time.monotonic() < deadline:
            time.sleep(0.1)

    def _is_here(self, process: psutil.Process) -> bool:
        try:
            return process.cwd() == str(self.folder)
        except psutil.Error:
            return False

    def leftovers(self) -> list[str]:
        """Return what is left in the folder for temporary files."""
        return sorted(path.name for path in self._temporary().iterdir() if path.name != "hsperfdata_root")

    def contents(self, *tops: str) -> dict[str, bytes | str]:
        """Return the bytes of all files in some folders, by name; of links where they lead."""
        found: dict[str, bytes | str] = {}
        for top in tops or (".",):
            start = self.path(top)
            for path in [start, *start.rglob("*")] if start.is_dir() else [start]:
                name = str(path.relative_to(self.folder))
                if path.is_symlink():
                    found[name] = str(path.readlink())
                elif path.is_file():
                    found[name] = path.read_bytes()
        return {name: content for name, content in found.items() if not name.startswith("tmp/")}

    def _temporary(self) -> Path:
        folder = self.path("tmp")
        folder.mkdir(exist_ok=True)
        return folder


def _end_large(process: subprocess.Popen[bytes], memory: int) -> None:
    """Kill a process and its children once one of them has more resident memory."""
    while process.poll() is None:
        with suppress(psutil.Error):
            top = psutil.Process(process.pid)
            if any(each.memory_info().rss > memory for each in [top, *top.children(recursive=True)]):
                os.killpg(process.pid, signal.SIGKILL)
        time.sleep(0.05)


def prepare(folder: Path, program: str) -> None:
    """Make the world that all attacks begin with."""
    world = World(folder, program)
    world.write("in/a.csv", "ts,user,amount\n1,a,1\n2,a,2\n100,b,3\n200,a,4\n")
    for day in ("01", "02", "03"):
        rows = "".join(f"2026-01-{day}T00:0{minute}:01,{user},{minute}\n" for minute in range(5) for user in "ab")
        world.write(f"days/dt=2026-01-{day}/a.csv", "ts,user,amount\n" + rows)
    world.write("users.csv", "user,city\na,x\nb,y\n")
    world.write("stranger.txt", "a stranger's\n")
    world.write("job.yaml", 'window: delta(ts,60)\nkey: user\nagg: ["sum(amount)"]\ninput: in\noutput: done\n')
    make_results(world)


def make_results(world: World) -> None:
    """Make the results, and the state; those of a copied world know that they were copied."""
    for name in ("done", "other", "range", "st"):
        shutil.rmtree(world.path(name), ignore_errors=True)
    other = ("run", *DELTA, "--agg", "sum(amount)", "days", "other", "--schema", "ts:timestamp")
    for words in (("run", "job.yaml"), other, ("run", *ON_STATE)):
        assert world.wincli(*words).code == 0
