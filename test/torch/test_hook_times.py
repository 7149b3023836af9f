"""Device times of steps from CUDA events, with events that a test sets: no GPU."""

import json
import os
import sys
import tempfile
import threading
import types
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "inferscope_probe"))
import inferscope_hook_repeats as hook_repeats
import inferscope_hook_threads as hook_threads
import inferscope_hook_times as hook_times
import torch  # noqa: F401  (the hooks find it in sys.modules)
from inferscope_hook_steps import Sequence
from inferscope_hook_threads import this_thread

MS = 1_000_000
STREAM = types.SimpleNamespace(device_index=0)


class Event:
    ms = 0.0

    def query(self):
        return True

    def synchronize(self):
        pass

    def elapsed_time(self, later):
        return later.ms - self.ms


def fail_on_device(*_):
    raise RuntimeError("CUDA error: device-side assert triggered")


class Clocks:
    """Time of the host (ns) and of the device (ms), which a call of the model advances; counts recorded events."""

    def __init__(self):
        self.ns, self.ms, self.recorded = 0, 0.0, 0

    def record(self, event, _stream):
        event.ms = self.ms
        self.recorded += 1

    def model(self, host_ns, device_ms):
        self.ns += host_ns
        self.ms += device_ms


class HookTimesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "record.jsonl")
        for patch in (
            mock.patch.dict(os.environ, {"INFERSCOPE_RECORD": self.path}),
            mock.patch.object(hook_times.time, "monotonic_ns", lambda: self.clocks.ns),
        ):
            patch.start()
            self.addCleanup(patch.stop)
        self.clocks = Clocks()
        self.times = hook_times.Times()
        self.times.new_event, self.times.record = Event, self.clocks.record
        self.times.stream_handle = lambda _: 7
        self.call = hook_repeats.repeating(lambda _, host_ns, device_ms: self.clocks.model(host_ns, device_ms), lambda *_: self.fail("not seen as a repeated step"))

    def start(self):
        """Runs a decode step of 2 ms that the next ones repeat. -> its RepeatedStep"""
        sequence = Sequence(0, False)
        sequence.cached_tokens = 10
        before, after = Event(), Event()
        self.times.record(before, STREAM)
        start_ns = self.clocks.ns
        self.clocks.model(1 * MS, 2.0)
        self.times.record(after, STREAM)
        events = hook_times.StepEvents(before, after, STREAM, 7)
        self.times.add_step(hook_times.Step("decode", 0, 0, start_ns, 1, 1, 11, events=events), self.clocks.ns)
        sequence.cached_tokens = 11
        return hook_times.RepeatedStep(self.times, self, sequence, None, "past_key_values", None, 1, 1, events)

    def run_steps(self, repeated, host_ns, device_ms):
        for duration in device_ms:
            this_thread().repeated = repeated
            self.call(self, host_ns=host_ns, device_ms=duration)

    def device_ms(self):
        """-> (start, duration) of each recorded step, ms"""
        self.times.flush(wait=True)
        lines = [json.loads(line) for line in Path(self.path).read_text().splitlines()]
        stages = [line for line in lines if line["type"] == "stage"]
        self.assertEqual([stage["step"] for stage in stages], list(range(len(stages))))
        self.assertEqual([stage["context_tokens_sum"] for stage in stages], list(range(11, 11 + len(stages))))
        return [tuple(None if ns is None else ns / MS for ns in (stage["device_start_ns"], stage["device_dur_ns"])) for stage in stages]

    def test_long_steps_have_an_event_each(self):
        repeated = self.start()
        self.run_steps(repeated, 8 * MS, (5.0, 7.0, 6.0))
        self.assertEqual(self.clocks.recorded, 5)
        self.assertEqual(self.device_ms(), [(0, 2), (2, 5), (7, 7), (14, 6)])

    def test_short_steps_share_an_event(self):
        repeated = self.start()
        self.run_steps(repeated, 4 * MS, (2.0, 3.0, 4.0, 5.0))
        self.assertEqual(self.clocks.recorded, 4)
        self.assertEqual(self.device_ms(), [(0, 2), (2, 2), (4, 4), (8, 4), (12, 4)])

    def test_steps_share_fewer_events_when_they_become_longer(self):
        repeated = self.start()
        self.run_steps(repeated, 4 * MS, (2.0,))
        self.run_steps(repeated, 12 * MS, (3.0, 3.0, 3.0, 5.0))
        self.assertEqual(self.clocks.recorded, 5)
        self.assertEqual(self.device_ms(), [(0, 2), (2, 2), (4, 3), (7, 3), (10, 3), (13, 5)])

    def test_at_most_sixteen_steps_share_an_event(self):
        repeated = self.start()
        self.run_steps(repeated, MS // 10, (3.0, *(1.0 * i for i in range(1, 17)), 9.0))
        self.assertEqual(self.clocks.recorded, 4)
        repeated.stop()
        self.assertEqual(self.clocks.recorded, 5)
        self.assertEqual(self.device_ms(), [(0, 2), (2, 3), *((5 + 8.5 * i, 8.5) for i in range(16)), (141, 9)])

    def test_what_does_not_repeat_a_step(self):
        class Model:
            pass

        model, other, cache = Model(), [], Model()
        call = hook_repeats.repeating(lambda *_, **_values: "called", lambda _, *arguments: other.append(arguments))
        repeated = hook_times.RepeatedStep(self.times, model, Sequence(0, False), cache, "state", 2, 2, 1, None)
        self.addCleanup(setattr, this_thread(), "repeated", None)
        this_thread().repeated = repeated
        ids = torch.ones(2, 1)
        self.assertEqual(call(model, ids, state=cache), "called")
        repeated.limit = 6
        self.assertEqual(call(model, input_ids=ids, state=cache), "called")
        self.assertEqual((len(other), len(repeated.spans)), (0, 2))
        for arguments, values in (
            ((ids,), {}),
            ((ids,), {"state": Model()}),
            ((torch.ones(2, 3),), {"state": cache}),
            (("no tensor",), {"state": cache}),
            ((), {"state": cache}),
        ):
            self.assertIsNone(call(model, *arguments, **values))
        self.assertEqual(len(other), 5)
        del model
        self.assertIsNone(repeated.owner_id)

    def test_a_forked_child_has_neither_the_other_threads_nor_the_steps_of_its_parent(self):
        other = threading.Thread(target=lambda: (this_thread(), fork.wait()))
        fork = threading.Event()
        other.start()
        self.addCleanup(other.join)
        self.addCleanup(fork.set)
        repeated = self.start()
        self.run_steps(repeated, 4 * MS, (2.0,))
        before, mine = dict(hook_threads.threads), this_thread()
        self.addCleanup(hook_threads.threads.update, before)
        self.assertIn(other.ident, before)
        hook_threads.forget_parent()
        self.assertEqual(list(hook_threads.threads.values()), [mine])
        self.assertIsNone(mine.repeated)

    def test_other_versions_of_the_call_of_a_module_are_called(self):
        class Module(torch.nn.Module):
            def _wrapped_call_impl(self, *values):
                return self._call_impl(*values)

        known = torch.nn.Module._wrapped_call_impl
        self.assertIs(hook_repeats._module_call(), known)
        for unknown in (Module._wrapped_call_impl, None):
            with mock.patch.object(torch.nn.Module, "_wrapped_call_impl", unknown):
                self.assertIsNone(hook_repeats._module_call())

    def test_steps_before_a_pause_take_as_long_as_those_before_them(self):
        repeated = self.start()
        self.run_steps(repeated, 4 * MS, (3.0, 5.0, 4.0))
        self.clocks.model(100 * MS, 100.0)
        repeated.stop()
        self.assertEqual(self.clocks.recorded, 3)
        self.assertEqual(self.device_ms(), [(0, 2), (2, 3), (5, 3), (8, 3)])

    def test_steps_after_an_error_of_the_device_have_host_times_only(self):
        repeated = self.start()
        self.run_steps(repeated, 8 * MS, (5.0, 7.0))
        self.times.record = fail_on_device
        self.run_steps(repeated, 8 * MS, (5.0, 5.0))
        repeated.stop()
        self.assertEqual(self.device_ms(), [(0, 2), (2, 5), (7, 7), (None, None), (None, None)])

    def test_steps_are_written_if_their_events_cannot_be_read(self):
        repeated = self.start()
        self.run_steps(repeated, 8 * MS, (5.0,))
        self.times.flush()
        self.run_steps(repeated, 4 * MS, (5.0, 5.0, 5.0))
        with mock.patch.multiple(Event, query=fail_on_device, synchronize=fail_on_device, elapsed_time=fail_on_device):
            self.clocks.model(100 * MS, 100.0)
            repeated.stop()
            self.assertEqual(self.device_ms(), [(0, 2), (2, 5), (None, None), (None, None), (None, None)])


if __name__ == "__main__":
    unittest.main()
