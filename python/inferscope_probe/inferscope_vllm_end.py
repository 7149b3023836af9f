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

from inferscope_container import below

GRACE_S = 10.0
_watcher: Optional["subprocess.Popen[bytes]"] = None


def end_engine(llm: Any) -> None:
    """Like vLLM when its object is garbage-collected: V1 has an engine core, V0 an executor."""
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


def end_below(root: int, grace_s: float = GRACE_S) -> None:
    """Waits for the engine's processes below `root`, and kills those that remain."""
    global _watcher
    if _watcher is not None:
        _watcher.kill()
        _watcher.wait()
        _watcher = None
    deadline = time.monotonic() + grace_s
    left = engine_below(root)
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left = engine_below(root)
    kill(left)


def engine_below(root: int) -> Set[int]:
    """Without multiprocessing's resource tracker, which exits with the last of them after it has cleaned up."""
    return {pid for pid in below(root) - {root} if state(pid) not in ("Z", "") and not tracks_resources(pid)}


def tracks_resources(pid: int) -> bool:
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            return b"multiprocessing.resource_tracker" in file.read()
    except OSError:
        return False


def state(pid: int) -> str:
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
    """Starts a process that kills this one's descendants if this one was killed and could not do so itself."""
    global _watcher
    if os.path.isdir("/proc"):
        _watcher = subprocess.Popen(
            [sys.executable, "-S", "-B", os.path.abspath(__file__), str(os.getpid())],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )


def watch(parent: int) -> None:
    seen: Set[int] = set()
    while os.getppid() == parent:
        seen |= below(parent) - {parent, os.getpid()}
        time.sleep(0.5)
    # An id may have been reused: only processes without a living parent were descendants.
    for pid in seen:
        if orphaned(pid):
            kill(below(pid))


def orphaned(pid: int) -> bool:
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return False
    return fields[0] != "Z" and int(fields[1]) == os.getppid()


if __name__ == "__main__":
    watch(int(sys.argv[1]))
