"""The transformers engine on the CPU, with a random Llama of two layers."""

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import weakref
from pathlib import Path
from unittest import mock

PYTHON = Path(__file__).resolve().parents[2] / "python"
PROBE = PYTHON / "inferscope_probe"
sys.path[:0] = [str(PROBE), str(PYTHON / "workloads")]
ENGINE = str(PROBE / "inferscope_engine.py")


def point(batch_size, input_len, output_len):
    name = "b%d-p%d-o%d" % (batch_size, input_len, output_len)
    return dict(point=name, parts=["latency"], batch_size=batch_size, input_len=input_len, output_len=output_len)


SHAPES = [point(1, 8, 4), point(2, 8, 4), point(1, 16, 3)]


def order(points=SHAPES, **changes):
    defaults = dict(
        v=1, execution_id="clean", launch=0, first_iteration=0, model="tiny", weights="random", dtype="float32", device="cpu",
        engine_args={"threads": "1"}, points=points, repeats=3, warmup={"min": 1, "max": 2, "within": 0.05}, device_work=True, seed=0,
    )
    return dict(defaults, **changes)


class InProcess(unittest.TestCase):
    """Runs the engine in this process, so that the model is loaded once and tests can inject faults."""

    @classmethod
    def setUpClass(cls):
        import inferscope_engine
        import inferscope_record

        cls.engine, cls.record = inferscope_engine, inferscope_record
        cls.runner = inferscope_engine.load(order())

    def measure(self, runner=None, **changes):
        """-> (progress, record lines)"""
        import torch

        sent = []
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "record.jsonl")
            with mock.patch.object(self.record, "_recorder", self.record.Recorder(path)):
                engine = self.engine.Engine(order(**changes), runner or self.runner)
                collect_progress = mock.patch.object(self.engine, "send_progress", lambda **fields: sent.append(fields))
                with collect_progress, torch.inference_mode():
                    engine.run()
            with open(path) as text:
                return sent, [json.loads(line) for line in text]

    def timed(self, lines):
        return [(line["point"], line["iteration"]) for line in lines if line["type"] == "request" and not line["warmup"]]

    def outcomes(self, lines):
        return {line["point"]: line["outcome"] for line in lines if line["type"] == "point"}


class EngineTest(InProcess):
    def test_repeats_are_interleaved_in_a_rotated_order(self):
        sent, lines = self.measure(first_iteration=30, launch=1)
        a, b, c = (shape["point"] for shape in SHAPES)
        expected = [b, c, a, c, a, b, a, b, c]
        self.assertEqual(self.timed(lines), list(zip(expected, range(30, 39))))
        self.assertEqual(self.outcomes(lines), {a: "measured", b: "measured", c: "measured"})
        self.assertEqual([line["phase"] for line in sent if line["type"] == "phase"], ["warmup", "timed"])
        warm = [line for line in lines if line["type"] == "request" and line["warmup"]]
        self.assertEqual([line["iteration"] for line in warm], [-10001 - number for number in range(len(warm))])
        for line in lines:
            if line["type"] == "point":
                warmups = [request for request in warm if request["point"] == line["point"]]
                self.assertEqual((line["warmup_iterations"], line["interleaved"], line["memory_bytes"]), (len(warmups), True, None))

    def test_stages_cover_the_request_without_gaps(self):
        _, lines = self.measure(points=[point(2, 8, 4)], repeats=1)
        request = [line for line in lines if line["type"] == "request"][-1]
        stages = [line for line in lines if line["type"] == "stage" and line["iteration"] == request["iteration"]]
        self.assertEqual([(s["kind"], s["step"]) for s in stages], [("prefill", 0), ("decode", 0), ("decode", 1), ("decode", 2)])
        self.assertEqual([s["context_tokens_sum"] for s in stages], [16, 18, 20, 22])
        self.assertEqual([s["new_tokens"] for s in stages], [16, 2, 2, 2])
        self.assertEqual((stages[0]["t_ns"], stages[0]["end_ns"]), (request["t_ns"], request["first_token_ns"]))
        self.assertEqual(stages[-1]["end_ns"], request["end_ns"])
        for before, after in zip(stages, stages[1:]):
            self.assertLess(after["t_ns"] - before["end_ns"], 1_000_000)
        self.assertEqual({s["device_dur_ns"] for s in stages}, {None})

    def test_tokens_are_those_of_the_workloads_and_of_transformers(self):
        import generation
        import torch

        flags = ["--weights", "random", "--model", "tiny", "--max-tokens", "6", "--input-len", "9", "--dtype", "float32"]
        args = generation.make_parser("", 6).parse_args(flags)
        shape = self.engine.Point(point(3, 9, 6))
        shape.decoder = self.runner.decoder(shape)
        with torch.inference_mode():
            theirs = generation.generate(generation.Decoder(self.runner.model, "cpu", "eager", "sdpa", 3, 9, 6), args, 7)[2]
            tokens = torch.tensor(self.runner.generate(shape, 7).tokens).T
            prompt = generation.random_prompt(512, 3, 9, 0, 7)
            generated = self.runner.model.generate(
                prompt, max_new_tokens=6, min_new_tokens=6, do_sample=False, eos_token_id=None, pad_token_id=0
            )
        self.assertEqual(tokens.tolist(), theirs.tolist())
        self.assertEqual(tokens.tolist(), generated[:, 9:].tolist())
        self.assertIsNone(shape.decoder.cache)

    @unittest.skipUnless(shutil.which("g++"), "torch.compile needs a C++ compiler")
    def test_compile_gives_the_tokens_of_eager(self):
        import torch

        runner = self.engine.load(order(engine_args={"mode": "compile", "threads": "1"}))
        tokens = []
        for mode_runner in (self.runner, runner):
            shape = self.engine.Point(point(2, 8, 4))
            shape.decoder = mode_runner.decoder(shape)
            with torch.inference_mode():
                tokens.append([mode_runner.generate(shape, number).tokens for number in (0, 1)])
        self.assertEqual(tokens[0], tokens[1])
        self.assertNotEqual(tokens[0][0], tokens[0][1])

    def test_a_cache_of_fixed_length_gives_the_tokens_of_eager_also_with_windows(self):
        import torch
        from inferscope_decoder import Decoder, ModelError, random_prompt
        from transformers import AutoModelForCausalLM, MistralConfig

        dims = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
        model = AutoModelForCausalLM.from_config(MistralConfig(vocab_size=512, sliding_window=12, **dims)).eval()
        prompt, tokens = random_prompt(512, 2, 8, 0, 0), {}
        for mode in ("eager", "compile"):
            decoder = Decoder(model, "cpu", mode, "sdpa", 2, 8, 4)
            if mode == "compile":  # the step that would be compiled or captured, run eagerly
                decoder._step = decoder._static_step
            with torch.inference_mode():
                out = [decoder.prefill(prompt).argmax(-1, keepdim=True)]
                for _ in range(3):
                    out.append(decoder.decode(out[-1]).argmax(-1, keepdim=True))
            tokens[mode] = torch.cat(out, 1).tolist()
        self.assertEqual(tokens["eager"], tokens["compile"])
        with self.assertRaises(ModelError) as raised:
            Decoder(model, "cpu", "cudagraph", "sdpa", 2, 8, 5)
        self.assertEqual(raised.exception.code, "E_LENGTHS")

    def failing_prefills(self, fails):
        """Prefills fail if `fails(batch_size, other decoders alive)` returns a text, like torch's allocator."""
        import inferscope_decoder
        import torch

        alive = weakref.WeakSet()

        class Decoder(inferscope_decoder.Decoder):
            def __init__(self, *args):
                super().__init__(*args)
                alive.add(self)

            def prefill(self, prompt):
                text = fails(self.batch_size, len(alive) - 1)
                if text:
                    raise torch.cuda.OutOfMemoryError(text) if "memory" in text else ValueError(text)
                return super().prefill(prompt)

        return mock.patch("inferscope_iteration.Decoder", Decoder)

    def test_out_of_memory_ends_that_point_only(self):
        text = "CUDA out of memory. Tried to allocate 2.00 GiB."
        with self.failing_prefills(lambda batch, others: text if batch == 2 else None):
            _, lines = self.measure()
        a, b, c = (shape["point"] for shape in SHAPES)
        self.assertEqual(self.outcomes(lines), {a: "measured", b: "out_of_memory", c: "measured"})
        (line,) = [line for line in lines if line["type"] == "point" and line["point"] == b]
        self.assertIn(text, line["text"])
        self.assertEqual([name for name, _ in self.timed(lines)], [a, c, c, a, a, c])

    def test_a_point_that_fits_only_alone_is_measured_in_a_row(self):
        with self.failing_prefills(lambda batch, others: "out of memory" if batch == 2 and others else None):
            _, lines = self.measure()
        a, b, c = (shape["point"] for shape in SHAPES)
        self.assertEqual(self.outcomes(lines), {a: "measured", b: "measured", c: "measured"})
        self.assertEqual([name for name, _ in self.timed(lines)], [a, c, c, a, a, c, b, b, b])
        self.assertEqual({l["point"]: l["interleaved"] for l in lines if l["type"] == "point"}, {a: True, b: False, c: True})

    def test_out_of_memory_in_a_capture_is_found_behind_its_error(self):
        import torch

        try:
            try:
                raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 GiB.")
            finally:
                raise RuntimeError("CUDA error: operation failed due to a previous error during capture")
        except RuntimeError as error:
            fault = self.engine.Fault(error)
        self.assertTrue(fault.is_out_of_memory)
        self.assertEqual(fault.text, "OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB.")
        self.assertFalse(self.engine.Fault(RuntimeError("CUDA error: an illegal memory access")).is_out_of_memory)
        on_load = self.engine._unexpected(torch.cuda.OutOfMemoryError("CUDA out of memory."), order())
        self.assertEqual(on_load.code, "E_OUT_OF_MEMORY")
        self.assertEqual(self.engine._unexpected(ModuleNotFoundError("no x", name="x"), order()).code, "E_ENGINE_MISSING")

    def test_another_exception_fails_that_point_only(self):
        with self.failing_prefills(lambda batch, others: "no such kernel" if batch == 2 else None):
            _, lines = self.measure()
        a, b, c = (shape["point"] for shape in SHAPES)
        self.assertEqual(self.outcomes(lines), {a: "measured", b: "failed", c: "measured"})
        self.assertIn("ValueError: no such kernel", [l["text"] for l in lines if l["type"] == "point"])

    def test_engine_arguments(self):
        args = self.engine.check_engine_args
        defaults = {"mode": "eager", "attn": "sdpa", "sync": "step", "tf32": "false", "threads": None, "tensor_parallel_size": None}
        self.assertEqual(args({}), defaults)
        self.assertEqual(args({"threads": "3", "mode": "compile"})["threads"], 3)
        for engine_args, fix in (
            ({"mod": "eager"}, "--engine-arg mode=eager"),
            ({"mode": "cudagraphs"}, "--engine-arg mode=cudagraph"),
            ({"threads": "0"}, "--engine-arg threads=4"),
            ({"quantization": "int8"}, "Leave it out"),
        ):
            with self.assertRaises(self.engine.ModelError) as raised:
                args(engine_args)
            self.assertEqual(raised.exception.code, "E_USAGE")
            self.assertIn(fix, str(raised.exception))


class DeviceWorkTest(unittest.TestCase):
    """Sums computed by hand: a prefill with two overlapping kernels and a copy, a decode step with a graph's three
    kernels and a copy.
    """

    def setUp(self):
        self.iteration = importlib.import_module("inferscope_iteration")
        ms = 1_000_000
        self.stages = [self.iteration.Stage(None, 0, 10 * ms), self.iteration.Stage(0, 11 * ms, 15 * ms)]
        self.prefill = [(1 * ms, 4 * ms, False), (3 * ms, 6 * ms, False), (8 * ms, 9 * ms, True)]
        self.decode = [(12 * ms, 13 * ms, False), (13 * ms, 14 * ms, False), (14 * ms, 14 * ms + 500, False), (14 * ms + 400, 14 * ms + 600, True)]

    def test_sums_and_unions(self):
        work = self.iteration.work_by_kind(self.stages, self.prefill + self.decode)
        self.assertEqual(
            work["prefill"],
            dict(stages=1, kernels=2, kernel_ns=6_000_000, copies=1, copy_ns=1_000_000, busy_ns=6_000_000, wall_ns=10_000_000),
        )
        self.assertEqual(
            work["decode"],
            dict(stages=1, kernels=3, kernel_ns=2_000_500, copies=1, copy_ns=200, busy_ns=2_000_600, wall_ns=4_000_000),
        )

    def test_work_that_cannot_be_assigned_is_reported(self):
        work = self.iteration.work_by_kind
        self.assertIn("no work in stage 2", work(self.stages, self.prefill))
        self.assertIn("across the end of stage 1", work(self.stages, self.prefill + [(9_000_000, 11_500_000, False)] + self.decode))
        self.assertIn("before the first stage", work(self.stages, [(-5_000_000, -4_000_000, False)] + self.prefill + self.decode))
        self.assertIn("after the last stage", work(self.stages, self.prefill + self.decode + [(16_000_000, 16_000_100, False)]))

    def test_the_profiler_has_the_clock_that_stages_are_converted_to(self):
        import torch

        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            torch.ones(3)
            time.sleep(0.01)
            before = time.monotonic_ns()
            torch.zeros(3)
            after = time.monotonic_ns()
        offset = self.iteration._realtime_offset_ns()
        (event,) = [e for e in profile.profiler.kineto_results.events() if e.name() == "aten::zeros"]
        self.assertGreater(event.start_ns(), before + offset - 100_000)
        self.assertLess(event.start_ns() + event.duration_ns(), after + offset + 100_000)


class ProcessTest(unittest.TestCase):
    def start(self, folder, what):
        Path(folder, "order.json").write_text(json.dumps(what))
        environment = dict(os.environ, INFERSCOPE_RECORD=os.path.join(folder, "record.jsonl"), HF_HUB_OFFLINE="1", HF_HOME=folder)
        return subprocess.Popen(
            [sys.executable, "-B", ENGINE, os.path.join(folder, "order.json")],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )

    def lines(self, folder):
        with open(os.path.join(folder, "record.jsonl")) as text:
            return [json.loads(line) for line in text]

    def test_sigint_ends_it_after_the_current_iteration(self):
        with tempfile.TemporaryDirectory() as folder:
            process = self.start(folder, order(SHAPES[:2], repeats=100_000, execution_id="v1"))
            for line in process.stdout:
                sent = json.loads(line)
                if sent["type"] == "iteration" and not sent["warmup"]:
                    process.send_signal(signal.SIGINT)
                    process.send_signal(signal.SIGINT)
                    break
            rest, stderr = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, stderr)
            sent = [json.loads(line) for line in rest.splitlines()]
            lines = self.lines(folder)
        self.assertEqual({line["execution_id"] for line in lines}, {"v1"})
        self.assertEqual([l["outcome"] for l in lines if l["type"] == "point"], ["stopped", "stopped"])
        self.assertEqual([line["outcome"] for line in sent if line["type"] == "point"], ["stopped", "stopped"])
        requests = [line for line in lines if line["type"] == "request"]
        steps = [line for line in lines if line["type"] == "stage" and line["iteration"] == requests[-1]["iteration"]]
        self.assertEqual(len(steps), 4)
        self.assertEqual(lines[-1]["type"], "clock")

    def test_failures_before_the_first_point(self):
        for changes, code, rc, text in (
            ({"engine_args": {"mode": "cudagraph"}}, "E_USAGE", 2, "needs a GPU"),
            ({"model": "no-such/model", "weights": "trained"}, "E_MODEL_NOT_FOUND", 1, "could not be loaded"),
            ({"dtype": "int3"}, "E_DTYPE", 1, "no dtype int3"),
        ):
            with tempfile.TemporaryDirectory() as folder:
                process = self.start(folder, order(**changes))
                stdout, stderr = process.communicate(timeout=120)
                errors = [line for line in self.lines(folder) if line["type"] == "error"]
            self.assertEqual([(line["code"], process.returncode) for line in errors], [(code, rc)], stderr)
            self.assertIn(text, errors[0]["text"])
            self.assertEqual(len(errors[0]["text"].split("\n")), 3)
            self.assertIn("error: ", stderr)
            self.assertEqual([json.loads(line)["type"] for line in stdout.splitlines()], ["phase"])


if __name__ == "__main__":
    unittest.main()
