"""What engines in Python share: they read a BenchOrder (src/model/bench.ts), measure its points in turn and record them.

Results are lines of the record file. Progress is written as JSON lines to what was stdout when `claim_stdout` was called;
everything else that the process or its children print goes to stderr.
"""

import json
import os
import signal
import sys
from typing import Any, Callable, Dict, Iterator, List, Optional

from inferscope_record import Recorder

Point = Dict[str, Any]
_progress_fd = 1


class EngineError(Exception):
    """A failure with a code of docs/reference/errors.md and three lines: what failed, why, what to type."""

    def __init__(self, code: str, what: str, why: str, fix: str) -> None:
        super().__init__(what)
        self.code, self.what, self.why, self.fix = code, what, why, fix


def claim_stdout() -> None:
    """Reserves stdout for progress: later output to stdout, as of engines and processes that they fork, goes to stderr."""
    global _progress_fd
    sys.stdout.flush()
    _progress_fd = os.dup(1)
    os.dup2(2, 1)


def silence() -> None:
    """Turns off progress in this process; another process of the group reports it."""
    global _progress_fd
    _progress_fd = -1


def send_progress(**fields: Any) -> None:
    """Writes a line of progress. If the reader has exited, this process exits, to free the GPU."""
    if _progress_fd < 0:
        return
    try:
        os.write(_progress_fd, (json.dumps(fields) + "\n").encode())
    except BrokenPipeError:
        # Not an Exception, so that code that handles failed points does not catch it.
        raise SystemExit(128 + signal.SIGPIPE) from None


def record_failure(records: Recorder, error: EngineError) -> None:
    """Records an `error` line of three lines, as all Python engines do, and prints it to stderr."""
    text = "%s\n%s\n%s" % (error.what, error.why, error.fix)
    records.error(error.code, text)
    records.flush()
    sys.stderr.write("error: %s\n" % text)


def read_order(path: str) -> Dict[str, Any]:
    with open(path, encoding="utf-8") as file:
        order: Dict[str, Any] = json.load(file)
    if order.get("v") != 1:
        raise EngineError(
            "E_INTERNAL", "the order %s has version %s" % (path, order.get("v")), "This probe knows version 1.",
            "Use the probe of the same inferscope version.",
        )
    return order


class StopFlag:
    """Set by SIGINT or SIGTERM: the current repeat is finished, and no other one is started.

    Repeated signals change nothing, because a terminal sends Ctrl-C to every process, and the parent passes it on.
    """

    def __init__(self) -> None:
        self.stopped = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)

    def _stop(self, number: int, _frame: Any) -> None:
        self.stopped = True


def sort_by_size(points: List[Point]) -> List[Point]:
    """Small points first, so that the additional memory of each is visible."""

    def size(point: Point) -> Any:
        context = point["input_len"] + point["output_len"]
        return (point["batch_size"] * context, point["batch_size"] * point["input_len"])

    return sorted(points, key=size)


def rotate(points: List[Any], turn: int) -> List[Any]:
    """The order of round `turn`: each round starts one point later than the previous one."""
    start = turn % max(1, len(points))
    return points[start:] + points[:start]


def interleave(points: List[Point], repeats: int, first: int) -> Iterator[Point]:
    """Round by round, each starting one point later, so that drift of the machine affects all points equally."""
    for turn in range(repeats):
        yield from rotate(points, turn + first)


def measure_points(
    order: Dict[str, Any],
    records: Recorder,
    measure: Callable[[Point, int, bool], int],
    classify: Callable[[BaseException], Optional[str]],
    stopped: Callable[[], bool],
) -> None:
    """Warms up every point, then times all of them in turn.

    `measure(point, iteration, warmup)` runs one repeat, writes its lines and returns its end-to-end time in ns.
    `classify(error)` returns out_of_memory or failed for an error that ends only the point; if it returns None, all open
    points are recorded as failed and the error is raised.
    """
    bounds = order["warmup"]
    state = {p["point"]: {"outcome": None, "warmups": 0, "stable": False, "done": 0} for p in order["points"]}
    iteration = int(order["first_iteration"])

    def end(point: Point, outcome: str, text: Optional[str]) -> None:
        status = state[point["point"]]
        status["outcome"] = outcome
        records.point(
            point["point"], order["launch"], outcome, text,
            warmup_iterations=status["warmups"], stable=status["stable"],
        )
        records.flush()
        send_progress(type="point", point=point["point"], outcome=outcome, text=text)

    def repeat(point: Point, warmup: bool) -> Optional[int]:
        nonlocal iteration
        try:
            took_ns = measure(point, iteration, warmup)
        except Exception as error:
            outcome = classify(error)
            text = first_line(error)
            if outcome is None:
                for other in order["points"]:
                    if state[other["point"]]["outcome"] is None:
                        end(other, "failed", text)
                raise
            end(point, outcome, text)
            return None
        records.flush()
        send_progress(type="iteration", point=point["point"], iteration=iteration, warmup=warmup, e2e_ms=took_ns / 1e6)
        iteration += 1
        return took_ns

    send_progress(type="phase", phase="warmup")
    for point in sort_by_size(order["points"]):
        status, previous_ns = state[point["point"]], None
        while status["warmups"] < bounds["max"] and not stopped():
            took_ns = repeat(point, True)
            if took_ns is None:
                break
            status["warmups"] += 1
            status["stable"] = previous_ns is not None and abs(took_ns - previous_ns) <= bounds["within"] * previous_ns
            if status["stable"] and status["warmups"] >= bounds["min"]:
                break
            previous_ns = took_ns
    send_progress(type="phase", phase="timed")
    for point in interleave(order["points"], order["repeats"], order["launch"]):
        status = state[point["point"]]
        if stopped():
            break
        if status["outcome"] is not None or repeat(point, False) is None:
            continue
        status["done"] += 1
        if status["done"] == order["repeats"]:
            end(point, "measured", None)
    for point in order["points"]:
        status = state[point["point"]]
        if status["outcome"] is None:
            end(point, "stopped", "Stopped after %d of %d timed repeats." % (status["done"], order["repeats"]))


def first_line(error: BaseException) -> str:
    text = str(error).strip().split("\n")[0]
    return (text or repr(error))[:500]
