"""Spark's settings for wincli, each with its reason. Users override them with ``--spark-conf``.

Figures: whole processes on 2 cores and Java 17, a job of 1,000 rows on ``local[2]``, the best of six, in seconds:

    context ready   first result   process ended
             2.42           3.66            5.57   Spark as pyspark starts it
             2.29           3.06            4.99   Java started directly (`windowing.spark.java`)
             2.27           3.05            3.58   and killed in the end (`windowing.spark.boot`)
             1.78           2.37            2.81   and -XX:TieredStopAtLevel=1
             1.57           2.49            3.03   all that stands here; the first result includes every import

Classes from an archive (`windowing.spark.class_archive`) and workers that grow from the driver
(`windowing.spark.workers.fork_server`) take off more than all of these: on another day 4.5 -> 1.8 until the process has
ended, 8.3 -> 3.3 of processor time.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from ..windowing.spark.masters import is_local

_LOGGING = Path(__file__).with_name("log4j2.properties")
_GB = 1 << 30

ALWAYS: Mapping[str, str] = {
    "spark.app.name": "wincli",
    "spark.ui.showConsoleProgress": "false",  # progress is ours to draw
    "spark.python.worker.reuse": "true",  # workers keep their loaded kernels between tasks
    "spark.python.daemon.module": "wincli.windowing.spark.workers.daemon",  # workers start with everything imported
    "spark.buffer.size": "1048576",  # blobs go to and from Python in 1 MiB pieces, not 64 KiB: 7 % of an exchange
    "spark.rpc.message.maxSize": "512",  # MiB; a plan over very many files goes out with its tasks
    "spark.driver.maxResultSize": "2g",  # reports of tasks are small; this only stops a runaway
}
"""For any master."""

WORKERS: Mapping[str, str] = {
    # A worker goes through gigabytes in arrays of megabytes. Kept by one allocator and not given back to the system in
    # between, the pages need not be mapped and cleared again each time: exchange and scan of 20 M rows 5.5 -> 4.3 s.
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(_GB),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(8 * _GB),
    "spark.executorEnv.MALLOC_TOP_PAD_": str(64 << 20),
}
"""The environment of Python workers, for any master. The variables are glibc's; other systems pass over them."""

CLUSTER: Mapping[str, str] = {
    "spark.submit.deployMode": "client",
    "spark.executorEnv.OMP_NUM_THREADS": "1",  # one task is one thread
    "spark.executorEnv.NUMBA_NUM_THREADS": "1",
}
"""For a master elsewhere, over `ALWAYS`. Its own settings for logs, its UI and the network stay as they are."""

LOCAL: Mapping[str, str] = {
    "spark.ui.enabled": "false",  # no web server for a job of seconds; 0.1 s, and no port
    "spark.eventLog.enabled": "false",
    "spark.driver.host": "127.0.0.1",  # no name lookup, and no port open to the network
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.metrics.executorMetricsSource.enabled": "false",  # nobody reads them; with the next 0.1 s
    "spark.metrics.staticSources.enabled": "false",
    "spark.shuffle.compress": "false",  # an exchange of 1.4 GB: 6.0 s instead of 6.6
    "spark.shuffle.spill.compress": "false",
    "spark.shuffle.checksum.enabled": "false",  # it only tells which disk or wire broke a block: 10 % of an exchange
    "spark.shuffle.sort.bypassMergeThreshold": "2000",  # blobs are few and large: write them, never sort them
}
"""For ``local`` masters, over `ALWAYS`."""

DRIVER_OPTIONS = (
    # Java only moves blobs, there is nothing to optimise: 0.8 s, and on a cluster 4.5 s of the driver's processor time
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",  # no files in /tmp/hsperfdata_USER
)
"""Options for the driver's Java, whatever the master. The Java of executors elsewhere stays as the cluster has it."""

LOCAL_OPTIONS = (
    # An exchange of 1.4 GB takes 11 s of processor time with this and the first of the others, not 17, and 100 MB less.
    "-XX:+UseSerialGC",
)
"""Options for the driver's Java on ``local`` masters, where it is the executor, too; over `DRIVER_OPTIONS`."""

SILENT = (
    # Java's two ways of logging end at once in what says nothing, rather than in log4j, which takes 0.2 s to set up.
    "-Dslf4j.provider=org.slf4j.helpers.NOP_FallbackServiceProvider",
    "-Dslf4j.internal.verbosity=ERROR",
    "-Dlog4j.provider=org.apache.logging.log4j.simple.internal.SimpleProvider",
    "-Dorg.apache.logging.log4j.simplelog.level=OFF",
)
"""Options for a Java that is not to log anything."""


def spark_settings(master: str, user: Mapping[str, str], verbose: bool = False) -> dict[str, str]:
    """All settings for ``master``: `ALWAYS`, `WORKERS`, `LOCAL` or `CLUSTER`, then the ``user``'s own over them."""
    local = is_local(master)
    java = [*DRIVER_OPTIONS, *(LOCAL_OPTIONS if local else ()), f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"]
    java.append(f"-Dwincli.log.level={'warn' if verbose else 'off'}")
    asked = user.get("spark.driver.extraJavaOptions", "")
    if local and not verbose and not any(word in asked for word in ("log4j", "slf4j", "wincli.log")):
        java += SILENT
    settings = {**ALWAYS, **WORKERS, **(LOCAL if local else CLUSTER)}
    settings["spark.driver.defaultJavaOptions"] = shlex.join(java)
    settings["spark.driver.memory"] = f"{heap_mb(memory_bytes())}m"
    return {**settings, **user}


def heap_mb(memory: int) -> int:
    """Java's heap: it holds a few blobs a core on their way, never the data; a quarter of memory, 1 to 8 GiB.

    An exchange of 1.4 GB in blobs of 10 MB ran as fast in 1 GiB as in 4, and used 0.4.
    """
    return min(max(memory // 4, _GB), 8 * _GB) >> 20


def memory_bytes() -> int:
    """Memory of the machine, or of the container where that is less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")]
    told = [path.read_text().strip() for path in limits if path.exists()]
    return min([machine, *(int(text) for text in told if text.isdigit())])
