"""The side of `inferscope memory --container` that runs inside the container. Standard library only, Python 3.8 and later.

  ready FOLDER                            removes the files of an earlier run
  run FOLDER MAP [--files] -- ARGUMENTS   runs this Python with them; --files takes a tar of files from stdin first
  follow FOLDER                           prints "#pid N", then the record as it grows, until the run has ended
  stop FOLDER SIGNAL                      INT asks the run to end, KILL ends it and its child processes
  clean FOLDER                            kills the run if it still runs, and removes the folder

inferscope copied FOLDER/probe, with this file, into the container; files from stdin go to FOLDER/files. MAP is a JSON object from
paths of the host to those in the container; it is applied to arguments and to the JSON files.
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


def map_paths(text: str, paths: Dict[str, str]) -> str:
    """Longest paths first, because a folder inside another one has its own mapping."""
    for path in sorted(paths, key=len, reverse=True):
        text = text.replace(path, paths[path])
    return text


def take_files(folder: str, paths: Dict[str, str]) -> None:
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
                data = map_paths(data.decode("utf-8"), paths).encode("utf-8")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)


def run(folder: str, paths: Dict[str, str], files: bool, arguments: List[str]) -> int:
    arguments = [map_paths(argument, paths) for argument in arguments]
    if not files:
        os.execv(sys.executable, [sys.executable] + arguments)
    take_files(folder, paths)
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


def read_text(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def follow(folder: str) -> int:
    """Returns when the run has ended; a reader that exits ends this process."""
    pid_written, offset = False, 0
    path = os.path.join(folder, RECORD)
    while True:
        ended = bool(read_text(os.path.join(folder, DONE)))
        pid = read_text(os.path.join(folder, PID))
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
        complete = len(data) if ended else data.rfind(b"\n") + 1
        sys.stdout.flush()
        sys.stdout.buffer.write(data[:complete])
        sys.stdout.buffer.flush()
        offset += complete
        if ended:
            return 0
        time.sleep(0.1)


def read_parents() -> Dict[int, int]:
    """Process id -> parent's id. The name in /proc/PID/stat, which comes first, may contain blanks and parentheses."""
    parent_by_pid: Dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            text = read_text("/proc/%s/stat" % name)
            if text:
                parent_by_pid[int(name)] = int(text.rsplit(")", 1)[1].split()[1])
    return parent_by_pid


def process_tree(root: int) -> Set[int]:
    """A process and all its descendants."""
    parent_by_pid, pids = read_parents(), {root}
    while True:
        more = {pid for pid, parent in parent_by_pid.items() if parent in pids and pid not in pids}
        if not more:
            return pids
        pids |= more


def belongs_to_run(folder: str, pid: int) -> bool:
    """Whether the process with this id, which may have been reused, is the run: its working directory is the run's folder."""
    try:
        return os.path.realpath("/proc/%d/cwd" % pid) == os.path.realpath(os.path.join(folder, "files"))
    except OSError:
        return False


def stop(folder: str, name: str) -> int:
    text = read_text(os.path.join(folder, PID))
    if not text or read_text(os.path.join(folder, DONE)) or not belongs_to_run(folder, int(text)):
        return 0
    root = int(text)
    for pid in process_tree(root) if name == "KILL" else {root}:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, getattr(signal, "SIG" + name))
    return 0


def clean(folder: str) -> int:
    stop(folder, "KILL")
    # `run`, in another process, may still write the exit code.
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
    sys.stderr.write("unknown verb: %s\n" % verb)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
