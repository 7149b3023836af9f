"""The side of `inferscope memory --container` that runs inside the container. Standard library only, Python 3.8 and later.

  ready FOLDER                            forgets an earlier run
  run FOLDER MAP [--files] -- ARGUMENTS   runs this Python with them; --files takes a tar of files from stdin first
  follow FOLDER                           prints "#pid N", then the record as it grows, until the run has ended
  stop FOLDER SIGNAL                      INT asks the run to end, KILL ends it and all below it
  clean FOLDER                            ends what is left of the run and removes the folder

FOLDER is what inferscope copied in: this file lies in FOLDER/probe, files from stdin go to FOLDER/files. MAP is JSON of paths
of the host and where the same is here; it is applied to arguments and to the JSON files.
"""

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from typing import Any, Dict, List, Set

PID, DONE, RECORD, LOG = "child.pid", "ended", "record.jsonl", "engine.log"


def mapped(text: str, places: Dict[str, str]) -> str:
    """Longest paths first, because a folder inside another one has its own mapping."""
    for path in sorted(places, key=len, reverse=True):
        text = text.replace(path, places[path])
    return text


def take_files(folder: str, places: Dict[str, str]) -> None:
    target = os.path.join(folder, "files")
    with tarfile.open(fileobj=io.BytesIO(sys.stdin.buffer.read())) as archive:
        for member in archive.getmembers():
            name = os.path.normpath(member.name)
            path = os.path.join(target, name)
            content = archive.extractfile(member)
            if content is None or name.startswith(("..", "/")):
                continue
            data = content.read()
            if name.endswith(".json"):
                data = mapped(data.decode("utf-8"), places).encode("utf-8")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)


def run(folder: str, places: Dict[str, str], files: bool, arguments: List[str]) -> int:
    arguments = [mapped(argument, places) for argument in arguments]
    if not files:
        os.execv(sys.executable, [sys.executable] + arguments)
    take_files(folder, places)
    environment = dict(os.environ, INFERSCOPE_RECORD=os.path.join(folder, RECORD))
    # In its own session, so that it is stopped as a whole and does not receive this process's signals.
    child = subprocess.Popen(
        [sys.executable] + arguments,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
        cwd=os.path.join(folder, "files"),
        start_new_session=True,
    )
    with open(os.path.join(folder, PID), "w", encoding="ascii") as file:
        file.write(str(child.pid))
    log_thread = threading.Thread(target=tee, args=(child.stderr, os.path.join(folder, LOG)), daemon=True)
    log_thread.start()
    code = child.wait()
    log_thread.join(5)
    # After a clean there is no folder anymore.
    with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, DONE), "w", encoding="ascii") as file:
        file.write(str(code))
    return 128 - code if code < 0 else code


def ready(folder: str) -> int:
    for name in (PID, DONE, RECORD, LOG):
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(folder, name))
    os.makedirs(os.path.join(folder, "files"), exist_ok=True)
    return 0


def tee(stream: Any, path: str) -> None:
    """Also writes the log in the container, because the stream to the host may break."""
    with open(path, "ab") as log:
        while True:
            data = os.read(stream.fileno(), 65536)
            if not data:
                return
            log.write(data)
            log.flush()
            with contextlib.suppress(OSError):
                os.write(2, data)


def read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def follow(folder: str) -> int:
    """Stops with the run, or when the reader has exited."""
    pid_written, offset = False, 0
    path = os.path.join(folder, RECORD)
    while True:
        ended = bool(read(os.path.join(folder, DONE)))
        pid = read(os.path.join(folder, PID))
        if pid and not pid_written:
            sys.stdout.write("#pid %s\n" % pid)
            pid_written = True
        try:
            with open(path, "rb") as file:
                file.seek(offset)
                data = file.read()
        except OSError:
            data = b""
        # An incomplete line is read next time.
        whole = len(data) if ended else data.rfind(b"\n") + 1
        sys.stdout.flush()
        sys.stdout.buffer.write(data[:whole])
        sys.stdout.buffer.flush()
        offset += whole
        if ended:
            return 0
        time.sleep(0.1)


def parents() -> Dict[int, int]:
    """Process id -> parent's id. The name in /proc/PID/stat may contain blanks and brackets."""
    parent_by_pid: Dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            text = read("/proc/%s/stat" % name)
            if text:
                parent_by_pid[int(name)] = int(text.rsplit(")", 1)[1].split()[1])
    return parent_by_pid


def below(root: int) -> Set[int]:
    """A process and all its descendants."""
    tree, pids = parents(), {root}
    while True:
        more = {pid for pid, parent in tree.items() if parent in pids and pid not in pids}
        if not more:
            return pids
        pids |= more


def ours(folder: str, pid: int) -> bool:
    """Whether the process with that id still belongs to the run: its working directory is the run's folder."""
    try:
        return os.path.realpath("/proc/%d/cwd" % pid) == os.path.realpath(os.path.join(folder, "files"))
    except OSError:
        return False


def stop(folder: str, name: str) -> int:
    text = read(os.path.join(folder, PID))
    if not text or read(os.path.join(folder, DONE)) or not ours(folder, int(text)):
        return 0
    root = int(text)
    for pid in below(root) if name == "KILL" else {root}:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, getattr(signal, "SIG" + name))
    return 0


def clean(folder: str) -> int:
    stop(folder, "KILL")
    # The run that waits for the engine still records how it exited.
    for _ in range(50):
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.1)
        if not os.path.exists(folder):
            return 0
    return 1


def main(arguments: List[str]) -> int:
    verb, folder = arguments[0], arguments[1]
    if verb == "ready":
        return ready(folder)
    if verb == "run":
        separator = arguments.index("--")
        return run(folder, json.loads(arguments[2]), "--files" in arguments[3:separator], arguments[separator + 1 :])
    if verb == "follow":
        return follow(folder)
    if verb == "stop":
        return stop(folder, arguments[2])
    if verb == "clean":
        return clean(folder)
    sys.stderr.write("no such verb: %s\n" % verb)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
