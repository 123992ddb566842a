"""Spark's settings for wincli, each with its reason. Users override them with ``--spark-conf``.

Figures: whole processes on 2 cores and Java 17, a job of 1,000 rows on ``local[2]``, the best of six, in seconds:

    context ready   first result   process ended
             2.42           3.66            5.57   Spark as pyspark starts it
             2.29           3.06            4.99   Java started directly (`windowing.spark.java`)
             2.27           3.05            3.58   and killed in the end (`windowing.spark.boot`)
             1.78           2.37            2.81   and -XX:TieredStopAtLevel=1
             1.57           2.49            3.03   all settings of this module; the first result includes every import

The class archive (`windowing.spark.class_archive`) and workers that are forked from the driver
(`windowing.spark.fork_server`) save more than all of these: measured on another day, the process ended after
1.8 s, not 4.5, and took 3.3 s of processor time, not 8.3.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from ..windowing.spark.setup import is_local
from ..windowing.support.redaction import SPARK_REDACTION

_LOGGING = Path(__file__).with_name("log4j2.properties")
_GB = 1 << 30

ALWAYS: Mapping[str, str] = {
    "spark.app.name": "wincli",
    "spark.redaction.regex": SPARK_REDACTION,  # its pages and event logs leave out what wincli does
    "spark.ui.showConsoleProgress": "false",  # wincli draws the progress itself
    "spark.python.worker.reuse": "true",  # workers keep their loaded kernels between tasks
    "spark.python.daemon.module": "wincli.windowing.spark.daemon",  # workers start with everything imported
    "spark.buffer.size": "1048576",  # blocks go to and from Python by 1 MiB, not by 64 KiB: 7 % of an exchange
    "spark.rpc.message.maxSize": "512",  # MiB; a plan over very many files goes out with its tasks
    "spark.driver.maxResultSize": "2g",  # reports of tasks are small; the limit only stops a runaway
}
"""Settings for any master."""

WORKERS: Mapping[str, str] = {
    # A worker goes through gigabytes in arrays of megabytes. If one allocator keeps the pages, the system need not map
    # and clear them again for each array: exchange and scan of 20 M rows take 4.3 s, not 5.5.
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(_GB),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(8 * _GB),
    "spark.executorEnv.MALLOC_TOP_PAD_": str(64 << 20),
}
"""The environment of Python workers, for any master. The MALLOC variables are those of glibc; others ignore them."""

CLUSTER: Mapping[str, str] = {
    "spark.submit.deployMode": "client",
    "spark.executorEnv.OMP_NUM_THREADS": "1",  # one task is one thread
    "spark.executorEnv.NUMBA_NUM_THREADS": "1",
    # Up to 200 slices Spark makes a file for each in each map task, in 1 ms: 20 M rows in 40 map tasks for 96 slices
    # took 28 s of processor time, and take 24. A few large blocks still go straight to files.
    "spark.shuffle.sort.bypassMergeThreshold": "16",
}
"""Settings for a cluster, over `ALWAYS`. The cluster's own settings for logs, UI and network stay as they are."""

LOCAL: Mapping[str, str] = {
    "spark.ui.enabled": "false",  # no web server for a job of seconds; 0.1 s, and no port
    "spark.eventLog.enabled": "false",
    "spark.driver.host": "127.0.0.1",  # no name look-up, and no port open to the network
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.metrics.executorMetricsSource.enabled": "false",  # nobody reads metrics; these two settings save 0.1 s
    "spark.metrics.staticSources.enabled": "false",
    "spark.shuffle.compress": "false",  # an exchange of 1.4 GB: 6.0 s instead of 6.6
    "spark.shuffle.spill.compress": "false",
    "spark.shuffle.checksum.enabled": "false",  # it only finds out which disk broke a block: 10 % of an exchange
    "spark.shuffle.sort.bypassMergeThreshold": "2000",  # blocks are few and large, so sorting them is of no use
}
"""Settings for ``local`` masters, over `ALWAYS`."""

DRIVER_OPTIONS = (
    # Java only moves blocks, so optimised code gains nothing: 0.8 s, on a cluster 4.5 s of the driver's processor time.
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",  # no files in /tmp/hsperfdata_USER
)
"""Options for the driver's Java, whatever the master. The Java of executors elsewhere stays as the cluster has it."""

LOCAL_OPTIONS = (
    # With this and TieredStopAtLevel an exchange of 1.4 GB takes 11 s of processor time, not 17, and 100 MB less.
    "-XX:+UseSerialGC",
)
"""Options for the driver's Java on ``local`` masters, where it is also the executor; added to `DRIVER_OPTIONS`."""

SILENT = (
    # Both logging interfaces of Java get a provider that writes nothing, since to set up log4j takes 0.2 s.
    "-Dslf4j.provider=org.slf4j.helpers.NOP_FallbackServiceProvider",
    "-Dslf4j.internal.verbosity=ERROR",
    "-Dlog4j.provider=org.apache.logging.log4j.simple.internal.SimpleProvider",
    "-Dorg.apache.logging.log4j.simplelog.level=OFF",
)
"""Options for a Java that is not to log anything."""


def spark_settings(master: str, user: Mapping[str, str], verbose: bool = False) -> dict[str, str]:
    """Return all settings for ``master``: `ALWAYS`, `WORKERS`, then `LOCAL` or `CLUSTER`, then those of ``user``."""
    local = is_local(master)
    java = [*DRIVER_OPTIONS, *(LOCAL_OPTIONS if local else ()), f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"]
    java.append(f"-Dwincli.log.level={'warn' if verbose else 'off'}")
    user_java = user.get("spark.driver.extraJavaOptions", "")
    if local and not verbose and not any(word in user_java for word in ("log4j", "slf4j", "wincli.log")):
        java += SILENT
    settings = {**ALWAYS, **WORKERS, **(LOCAL if local else CLUSTER)}
    settings["spark.driver.defaultJavaOptions"] = shlex.join(java)
    settings["spark.driver.memory"] = f"{heap_mb(memory_bytes())}m"
    return {**settings, **user}


def heap_mb(memory: int) -> int:
    """Return the size of Java's heap in MiB for ``memory`` in bytes: a quarter of it, 1 to 8 GiB.

    The heap holds a few blocks in transit for each core, never the data: an exchange of 1.4 GB in blocks of 10 MB ran
    as fast in 1 GiB as in 4, and used 0.4.
    """
    return min(max(memory // 4, _GB), 8 * _GB) >> 20


def memory_bytes() -> int:
    """Return the memory of the machine in bytes, or of the container where that is less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")]
    texts = [path.read_text().strip() for path in limits if path.exists()]
    return min([machine, *(int(text) for text in texts if text.isdigit())])


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
