"""The process of a side of `scripts/golden`: it loads the modules of its checkout, and runs commands in forks.

    PATH/.venv/bin/python golden_side.py PLACE SAID SHARE OF plain|traced

All that it takes from the checkout under test is the entry point of the command line, and, where it is still there, the
place at which Spark starts, so that a loop runs the tasks in its stead.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import importlib.metadata
import json
import os
import pickle
import re
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any

from golden_compare import Masks, contents, first_difference
from golden_jobs import FORMATS, Job, all_jobs

CHECKOUT = os.environ.pop("GOLDEN_CHECKOUT", "") + os.sep
_FOLDERS = (os.environ.get("PYTHONPATH", "") + "/wincli", CHECKOUT[:-1], str(Path(sys.prefix).parent))
PROGRAMS = tuple(each for each in _FOLDERS if each not in ("", "/wincli"))


def serve(place: Path, said: Path, share: int, of: int, traced: bool) -> None:
    """Run each ``of``-th job, from ``share`` on, in forks of this process."""
    load_modules(place, said)
    if (said / "0.truth").exists():  # one mistake is soon found: not all kernels are needed
        KERNELS.read = (place.parent / "kernels").stat().st_size
    known = {job.name: job for job in all_jobs()}
    for number, name in enumerate(json.loads((said / "jobs.json").read_text())):
        if number % of == share and not (said / "stop").exists():
            KERNELS.load(place.parent / "kernels")
            told = run_job(known[name], place, said / f"{number}.calls" if traced else None)
            unfinished, truth = said / f"{number}.unfinished", said / f"{number}.truth"
            unfinished.write_text(json.dumps(told))
            unfinished.rename(said / f"{number}.said")
            if truth.exists() and first_difference(json.loads(json.dumps(told)), json.loads(truth.read_text())):
                (said / "stop").touch()


def load_modules(place: Path, said: Path) -> None:
    """Load what commands load, so that forks begin with it.

    The first process of a net lets forks run a few commands, and they tell what they have loaded; others go by that.
    """
    known = place.parent / "modules"
    if not known.exists():
        folder = place / f"first-{os.getpid()}"
        folder.mkdir()
        words = ["run", "-w", "delta(t, 7)", "-k", "u", "--order-by", "t", "-a", "sum(x)", "--where", "x > 1"]
        samples = [[*words, f"../../data/{form}/log", f"out-{form}", "--output-format", form] for form in FORMATS]
        samples += [["report", "out-csv"], ["verify", "out-csv"], ["plan", *words, "../../data/csv/log"]]
        samples += [["why", "out-csv", "--window", "0", "--only", "u=a"], ["diff", "out-csv", "out-parquet"]]
        for sample in samples:
            in_fork(sample, folder, "stand-in", None, said / f"{os.getpid()}.modules")
        shutil.rmtree(folder)
        (said / f"{os.getpid()}.modules").replace(known)
    for name in sorted({name for line in known.read_text().splitlines() for name in line.split()}):
        if not name.startswith(("__main__", "golden")):
            with contextlib.suppress(Exception):
                importlib.import_module(name)


class Kernels:
    """The compiled kernels that forks have used: loaded here as well, so that the next fork need not load them."""

    def __init__(self) -> None:
        self.file: Path | None = None
        self.read = 0
        self.loaded: set[bytes] = set()

    def load(self, told: Path) -> None:
        """Load what forks of all processes of a side have told in a file since the last time."""
        self.file = told
        told.touch()
        with told.open("rb") as file:
            file.seek(self.read)
            lines = file.readlines()
        for line in lines:
            if line.endswith(b"\n"):
                self.read += len(line)
                if line not in self.loaded:
                    self.loaded.add(line)
                    with contextlib.suppress(Exception):  # of another checkout, which has other modules
                        module, name, signature = pickle.loads(bytes.fromhex(line.decode()))
                        getattr(sys.modules[module], name).compile(signature)

    def tell(self) -> None:
        """Tell, in a fork, which it has used."""
        if self.file is None or "numba" not in sys.modules:
            return
        lines = []
        for module, loaded in list(sys.modules.items()):
            if module.startswith("wincli.windowing"):
                for name, value in list(vars(loaded).items()):
                    for signature in getattr(getattr(value, "compiled", value), "overloads", ()):
                        line = pickle.dumps((module, name, signature)).hex().encode() + b"\n"
                        lines += [line] if line not in self.loaded else []
        with self.file.open("ab", buffering=0) as file:
            file.write(b"".join(lines))


KERNELS = Kernels()


def run_job(job: Job, place: Path, calls: Path | None) -> dict[str, Any]:
    """Run the commands of a job in a fresh folder, and return what they left and printed."""
    began = time.time()
    folder = place / f"job-{hashlib.md5(job.name.encode()).hexdigest()[:8]}"
    folder.mkdir()
    for name, text in job.files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    before_job(job, folder)
    masks, ran = Masks(began, PROGRAMS, "s3" not in job.stores), []
    for words in job.commands:
        ended = bool(ran) and ran[-1]["code"] < 0  # by a signal, or as it had no end
        nothing = {"words": words, "code": -1, "out": "", "err": ""}
        ran.append(nothing if ended else run_words(words, folder, job.spark, calls))
        masks.observe(folder)
    after_job(job, folder)
    masks.ended = time.time()
    files = contents(folder, masks)
    for each in ran:
        for part in ("out", "err"):
            each[part] = masks.text(each[part])
            if job.unordered and part == "err":
                each[part] = "\n".join(sorted(each[part].splitlines()))
    shutil.rmtree(folder)
    told = {"name": job.name, "commands": ran, "files": files}
    if calls is not None and calls.exists():
        told["calls"] = sorted(set(calls.read_text().splitlines()))
    return told


def before_job(job: Job, folder: Path) -> None:
    """Make the stores that a job writes to."""
    os.environ.update(PYICEBERG_CATALOG__LAKE__TYPE="sql", PYICEBERG_CATALOG__LAKE__URI=f"sqlite:///{folder}/catalog.db",
                      PYICEBERG_CATALOG__LAKE__WAREHOUSE=f"file://{folder}/tables")  # fmt: skip
    if "s3" in job.stores:
        store_client().create_bucket(Bucket=folder.name)
    if "iceberg" in job.stores:
        program = folder / "namespace.py"
        program.write_text(
            "from pyiceberg.catalog import load_catalog as lake\nlake('lake').create_namespace('logs')\n"
        )
        run_words(("!python", program.name), folder, "stand-in", None)


def after_job(job: Job, folder: Path) -> None:
    """Bring what is in stores to the folder."""
    if "s3" in job.stores:
        client = store_client()
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=folder.name):
            for each in page.get("Contents", ()):
                target = folder / "bucket" / each["Key"]
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(client.get_object(Bucket=folder.name, Key=each["Key"])["Body"].read())
                client.delete_object(Bucket=folder.name, Key=each["Key"])
        client.delete_bucket(Bucket=folder.name)  # the server forgets nothing by itself, and the other side comes


def store_client() -> Any:
    import boto3

    return boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"], region_name="us-east-1")


def run_words(words: tuple[str, ...], folder: Path, spark: str, calls: Path | None) -> dict[str, Any]:
    """Run one command of a job."""
    words = tuple(word.replace("{bucket}", folder.name) for word in words)
    told: dict[str, Any] = {"words": words, "code": 0, "out": "", "err": ""}
    if words[0] == "!copy":
        source, target = folder / words[1], folder / words[2]
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            for path in source.rglob("*"):
                if path.is_file():
                    to = target / path.relative_to(source)
                    to = to.with_name(f"z{to.name}") if to.exists() else to
                    to.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(path, to)
        else:
            shutil.copy2(source, target)
        return told
    if words[0] == "!remove":
        for path in sorted(folder.glob(words[1])):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return told
    if words[0] == "!damage":
        for path in sorted(folder.glob(words[1])):
            content = bytearray(path.read_bytes())
            content[min(len(content) // 2, 100)] ^= 1
            path.write_bytes(content)
        return told
    code = in_fork(words, folder, spark, calls)
    out, err = ((folder / f".said-{name}") for name in ("out", "err"))
    told.update(code=code, out=out.read_text(errors="backslashreplace"), err=err.read_text(errors="backslashreplace"))
    out.unlink()
    err.unlink()
    return told


def in_fork(words: Any, folder: Path, spark: str, calls: Path | None, modules: Path | None = None) -> int:
    """Run a command in a fork of this process, as if it were a process of its own; return its exit code."""
    pid = os.fork()
    if pid == 0:
        import signal

        signal.alarm(240)  # a command without an end
        if spark != "spark":  # the same of its own time, which other processes do not take from it
            signal.setitimer(signal.ITIMER_PROF, 40)
        os.chdir(folder)
        words = list(words)
        source = words[words.index("<") + 1] if "<" in words else os.devnull
        words = words[: words.index("<")] if "<" in words else words
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        while words and re.match(r"\w+=", words[0]):
            name, _, value = words.pop(0).partition("=")
            os.environ[name] = value.replace("\\n", "\n")
        opened = [os.open(source, os.O_RDONLY), os.open(".said-out", flags), os.open(".said-err", flags)]
        for number, file in enumerate(opened):
            os.dup2(file, number)
        _play(words, spark, calls, modules)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


_PROGRAM = (
    "import importlib.metadata as m; next(e for e in m.entry_points(group='console_scripts', name='wincli')).load()()"
)


def _play(words: list[str], spark: str, calls: Path | None, modules: Path | None) -> None:
    """Be the program; never returns."""
    code: Any = 0
    sys.dont_write_bytecode = True
    traced: set[Any] = set()
    try:
        if words and words[0] == "!process":
            os.execv(sys.executable, [sys.executable, "-c", _PROGRAM, *words[1:]])
        if spark != "spark":
            _without_java(is_one_machine=spark != "cluster")
        if calls is not None:
            watch = lambda frame, *_: traced.add(frame.f_code)  # noqa: E731
            threading.settrace(watch)
            sys.settrace(watch)
        if words and words[0] == "!python":
            sys.argv = ["program"]
            exec(compile(Path(words[1]).read_text(), words[1], "exec"), {"__name__": "__main__"})
        else:
            sys.argv = ["wincli", *words]
            next(iter(importlib.metadata.entry_points(group="console_scripts", name="wincli"))).load()()
    except SystemExit as ended:
        code = ended.code
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        code = 99
    sys.settrace(None)
    threading.settrace(None)  # type: ignore[arg-type]
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    if calls is not None:
        with calls.open("a") as file:
            places = {f"{each.co_filename}:{each.co_firstlineno}\n" for each in traced}
            own = (each for each in places if each.startswith(CHECKOUT) and "/.venv/" not in each)
            file.writelines(each.removeprefix(CHECKOUT) for each in own)
    KERNELS.tell()
    if modules is not None:
        with modules.open("a") as file:
            file.write(" ".join(sys.modules) + "\n")
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _without_java(is_one_machine: bool) -> None:
    """Let a loop run tasks where Spark would, if the checkout has its Spark where this knows; else Spark starts."""
    from types import SimpleNamespace

    try:
        try:
            from wincli.cli.launch import run  # type: ignore[attr-defined]  # as in 0.14.0
        except ImportError:
            from wincli.cli import launch as run
        from wincli.windowing.local_executor import LocalExecutor

        class Session(LocalExecutor):
            on_progress: Any = None
            is_open = False
            __setattr__ = object.__setattr__

        session = Session(parallelism=2, is_one_machine=is_one_machine)

        class Boot(SimpleNamespace):
            __enter__ = lambda self: self  # noqa: E731
            __exit__ = lambda *_: None  # noqa: E731

        nothing = lambda *_, **__: None  # noqa: E731
        boot = Boot(start_fork_server=nothing, connect=nothing, close=nothing, session=lambda: session,
                    warm=lambda call, *arguments: call(*arguments), notes=())  # fmt: skip
        if callable(run._boot):
            run._boot = lambda *_: boot  # type: ignore[assignment]
    except (ImportError, AttributeError):
        pass


if __name__ == "__main__":
    serve(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5] == "traced")
