"""the samples of the queues of engines, with stand-ins for their schedulers."""

import contextlib
import io
import json
import multiprocessing
import os
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

PROBE = Path(__file__).resolve().parents[2] / "python" / "inferscope_probe"
sys.path.insert(0, str(PROBE))
import inferscope_queue as queue  # noqa: E402


class FakeScheduler:
    """The part of vllm.v1.core.sched.scheduler (0.26) that counts requests: four run, the others wait."""

    def __init__(self, requests):
        self.requests = requests

    def schedule(self, throttle_prefills=False):
        self.requests -= 1
        return throttle_prefills

    def get_request_counts(self):
        if self.requests < 0:
            raise RuntimeError("no counts")
        return min(4, self.requests), max(0, self.requests - 4)


class QueueTest(unittest.TestCase):
    def run_scheduler(self, steps, period_ns=0, **environment):
        """-> the lines that a forked process records in so many steps with 8 requests, and its stderr"""
        module = types.SimpleNamespace(Scheduler=type("Scheduler", (FakeScheduler,), {"schedule": FakeScheduler.schedule}))
        queue._on_vllm(module)

        def serve(errors):
            with open(errors, "w") as sys.stderr, mock.patch.object(queue, "_PERIOD_NS", period_ns):
                scheduler = module.Scheduler(8)
                assert [scheduler.schedule(True) for _ in range(steps)] == [True] * steps

        with tempfile.TemporaryDirectory() as folder:
            path, errors = os.path.join(folder, "record.jsonl"), os.path.join(folder, "errors.txt")
            with mock.patch.dict(os.environ, {"INFERSCOPE_RECORD": path, **environment}):
                process = multiprocessing.get_context("fork").Process(target=serve, args=(errors,))
                process.start()
                process.join(60)
            self.assertEqual(process.exitcode, 0)
            lines = [json.loads(line) for line in Path(path).read_text().splitlines()] if os.path.exists(path) else []
            return lines, Path(errors).read_text()

    def test_running_and_waiting_requests_are_recorded_after_each_step(self):
        lines, errors = self.run_scheduler(5)
        self.assertEqual(errors, "")
        self.assertEqual([line["type"] for line in lines], ["clock", *["telemetry"] * 10, "clock"])
        samples = [(line["scope"], line["metric"], line["value"]) for line in lines if line["type"] == "telemetry"]
        waiting = [value for _, metric, value in samples if metric == "requests_waiting"]
        running = [value for scope, metric, value in samples if (scope, metric) == ("engine", "requests_running")]
        self.assertEqual((running, waiting), ([4, 4, 4, 4, 3], [3, 2, 1, 0, 0]))

    def test_steps_within_ten_milliseconds_share_a_sample(self):
        lines, _ = self.run_scheduler(5, period_ns=10**12)
        self.assertEqual(sum(line["type"] == "telemetry" for line in lines), 2)

    def test_nothing_is_recorded_without_hooks_or_by_our_own_engine(self):
        self.assertEqual(self.run_scheduler(2, INFERSCOPE_HOOKS="off"), ([], ""))
        self.assertEqual(self.run_scheduler(2, INFERSCOPE_EXECUTION_ID="clean"), ([], ""))

    def test_an_error_is_reported_once_and_the_program_goes_on(self):
        lines, errors = self.run_scheduler(12)
        self.assertEqual(len(errors.splitlines()), 1)
        self.assertIn("no counts", errors)
        self.assertEqual(sum(line["type"] == "telemetry" for line in lines), 16)

    def test_a_scheduler_of_an_old_version_stays_as_it_is(self):
        module = types.SimpleNamespace(Scheduler=type("Scheduler", (), {"schedule": lambda self: 1}))
        before = module.Scheduler.schedule
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            queue._on_vllm(module)
        self.assertIs(module.Scheduler.schedule, before)
        self.assertEqual(errors.getvalue(), "")

    def test_requests_of_sglang_are_counted_after_each_choice_of_a_batch(self):
        class Scheduler:  # the part of sglang.srt.managers.scheduler (0.5.15) that chooses a batch
            running_batch = types.SimpleNamespace(reqs=["a", "b"])
            waiting_queue = ["c"]

            def get_next_batch_to_run(self):
                return "batch"

        module, counts = types.SimpleNamespace(Scheduler=Scheduler), []
        queue._on_sglang(module)
        with mock.patch.object(queue, "_sample", lambda scheduler, count: counts.append(count(scheduler))):
            self.assertEqual(module.Scheduler().get_next_batch_to_run(), "batch")
        self.assertEqual(counts, [(2, 1)])
