"""Stops vLLM's processes. Its engine core outlives a front end that just exits, and would keep the device's memory
and the log's pipe. Standard library only.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import Any, Optional, Set

from inferscope_container import process_tree

GRACE_S = 10.0
_watcher: Optional["subprocess.Popen[bytes]"] = None


def end_engine(llm: Any) -> None:
    """Shuts vLLM down as the garbage collection of its object does: V1 has an engine core, V0 an executor."""
    engine = getattr(llm, "llm_engine", None)
    for name in ("engine_core", "model_executor"):
        shutdown = getattr(getattr(engine, name, None), "shutdown", None)
        if shutdown is None:
            continue
        try:
            shutdown()
        except Exception as error:
            sys.stderr.write("inferscope: vLLM's %s did not shut down: %s\n" % (name, error))
        return


def end_engine_processes(root: int, grace_s: float = GRACE_S) -> None:
    """Waits for the descendants of `root`, and kills those that remain."""
    global _watcher
    if _watcher is not None:
        _watcher.kill()
        _watcher.wait()
        _watcher = None
    deadline = time.monotonic() + grace_s
    remaining = engine_processes(root)
    while remaining and time.monotonic() < deadline:
        time.sleep(0.05)
        remaining = engine_processes(root)
    kill(remaining)


def engine_processes(root: int) -> Set[int]:
    """Descendants of `root` that run, without multiprocessing's resource tracker, which exits after the last of them."""
    return {pid for pid in process_tree(root) - {root} if process_state(pid) not in ("Z", "") and not is_resource_tracker(pid)}


def is_resource_tracker(pid: int) -> bool:
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            return b"multiprocessing.resource_tracker" in file.read()
    except OSError:
        return False


def process_state(pid: int) -> str:
    """R, S, Z, … from /proc/<pid>/stat; '' without a process."""
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):
        return ""


def kill(pids: Set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def watch_from_outside() -> None:
    """Starts a process that kills the descendants of this one when this one has been killed."""
    global _watcher
    if os.path.isdir("/proc"):
        _watcher = subprocess.Popen(
            [sys.executable, "-S", "-B", os.path.abspath(__file__), str(os.getpid())],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )


def watch_parent(parent: int) -> None:
    """Kills the descendants of `parent` when it has exited."""
    seen: Set[int] = set()
    while os.getppid() == parent:
        seen |= process_tree(parent) - {parent, os.getpid()}
        time.sleep(0.5)
    # An id may have been reused: only processes without a living parent were descendants.
    for pid in seen:
        if is_orphaned(pid):
            kill(process_tree(pid))


def is_orphaned(pid: int) -> bool:
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return False
    return fields[0] != "Z" and int(fields[1]) == os.getppid()


if __name__ == "__main__":
    watch_parent(int(sys.argv[1]))
