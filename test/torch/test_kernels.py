"""Operations of the kernels command on the CPU: checked against float64, timed, and the outcomes of failing ones."""

import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

PROBE = Path(__file__).resolve().parents[2] / "python" / "inferscope_probe"
sys.path.insert(0, str(PROBE))

FLOATS = ("float32", "tfloat32", "float16", "bfloat16")
HEADS = dict(batch=2, heads=4, kv_heads=2, head_dim=16)
# Sizes that are not multiples of any tile or vector.
OPERATIONS = [
    ("gemm", FLOATS, dict(m=33, n=41, k=67)),
    ("linear", FLOATS, dict(tokens=5, in_features=67, out_features=41, bias=1)),
    ("linear", ("float32",), dict(tokens=5, in_features=67, out_features=41, bias=0)),
    ("conv2d", ("float32", "bfloat16"), dict(batch=2, channels=3, out_channels=9, height=11, width=13, kernel=3)),
    ("lstm", ("float32", "bfloat16"), dict(batch=3, seq=20, input=9, hidden=17, layers=2)),
    ("layernorm-gelu", FLOATS, dict(tokens=7, hidden=67)),
    ("attention", FLOATS, dict(HEADS, new_tokens=13, context=13)),
    ("attention", FLOATS, dict(HEADS, new_tokens=1, context=13)),
    ("attention", ("float32",), dict(HEADS, new_tokens=5, context=13)),
    ("attention", ("float32",), dict(HEADS, kv_heads=4, new_tokens=5, context=13)),
    ("softmax", FLOATS, dict(rows=9, columns=101)),
    ("rmsnorm", FLOATS, dict(tokens=9, hidden=67, residual=1)),
    ("rmsnorm", FLOATS, dict(tokens=9, hidden=67, residual=0)),
    ("swiglu", FLOATS, dict(tokens=9, intermediate=67)),
    ("rope", FLOATS, dict(tokens=9, heads=4, kv_heads=2, head_dim=16)),
    ("embedding", FLOATS, dict(tokens=9, vocab=101, hidden=17)),
    ("sampling", FLOATS, dict(batch=3, vocab=1001)),
    ("gemm", ("int8", "float8"), dict(m=32, n=64, k=96)),
    ("linear", ("int8", "float8"), dict(tokens=32, in_features=96, out_features=64, bias=0)),
    ("copy", ("float32",), dict(bytes=1 << 16)),
    ("read", ("float32",), dict(bytes=1 << 16)),
    ("write", ("float32",), dict(bytes=1 << 16)),
    ("triad", ("float32",), dict(bytes=1 << 16)),
    ("l2-read", ("float32",), dict(bytes=1 << 16)),
]


def case(kernel, dtype="float32", /, backend=None, name=None, **params):
    return dict(case=name or kernel, kernel=kernel, backend=backend, dtype=dtype, params=params, flops=0, bytes=1000)


def softmax(name):
    return case("softmax", name=name, rows=3, columns=64)


def order(cases, **changes):
    defaults = dict(
        v=1, execution_id="kernels", device="cpu", cases=cases, runs=3, max_runs=6, max_seconds=0.05, target_half_width=0.05,
        graph="auto", check=True, seed=1,
    )  # fmt: skip
    return dict(defaults, **changes)


class InProcess(unittest.TestCase):
    def measure(self, cases, stop=lambda: False, **changes):
        """-> (record lines, progress)"""
        import inferscope_kernels
        import inferscope_record
        import torch

        class Flag:
            stopped = property(lambda _: stop())

        sent = []
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "record.jsonl")
            with mock.patch.object(inferscope_record, "_recorder", inferscope_record.Recorder(path)):
                with mock.patch.object(inferscope_kernels, "send_progress", lambda **fields: sent.append(fields)), torch.no_grad():
                    inferscope_kernels.Bench(order(cases, **changes), "cpu", Flag()).run()
            lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
        return [line for line in lines if line["type"] == "microbenchmark"], sent


class Operations(InProcess):
    def test_each_operation_agrees_with_float64(self):
        cases = [case(kernel, dtype, **params) for kernel, dtypes, params in OPERATIONS for dtype in dtypes]
        lines, _ = self.measure(cases)
        self.assertEqual(len(lines), len(cases))
        for spec, line in zip(cases, lines):
            with self.subTest(spec["kernel"], dtype=spec["dtype"], **spec["params"]):
                self.assertEqual((line["outcome"], line["text"]), ("measured", None))
                self.assertGreaterEqual(len(line["samples_ns"]), 3)
                self.assertGreater(min(line["samples_ns"]), 0)
                self.assertEqual(line["params"], spec["params"])
                self.assertLessEqual(line["t_ns"], line["end_ns"])
                self.assertIsNotNone(line["max_error"])
                if spec["dtype"] == "int8" or spec["kernel"] in ("embedding", "sampling", "copy"):
                    self.assertEqual(line["max_error"], 0)

    def test_measured_cases_are_traced(self):
        with tempfile.TemporaryDirectory() as folder:
            cases = [softmax("a"), case("gemm", "int4", m=8, n=8, k=8), case("gemm", "float32", m=8, n=8, k=8)]
            lines, _ = self.measure(cases, trace={"folder": folder, "runs": 3})
            (name,) = os.listdir(folder)
            with gzip.open(os.path.join(folder, name)) as file:
                events = [event for event in json.load(file)["traceEvents"] if event.get("ph") == "X"]
        names = [event["name"] for event in events]
        measured = [line["case"] for line in lines if line["outcome"] == "measured"]
        self.assertEqual(len(measured), 2)
        self.assertEqual({name for name in names if name.startswith("case:")}, {"case:" + name for name in measured})
        self.assertEqual([names.count("case:" + name) for name in measured], [3, 3])
        self.assertEqual((names.count("aten::_softmax"), names.count("aten::mm")), (4, 4))

    def test_all_kernels_of_the_command_exist(self):
        from inferscope_kernel_probes import OPERATIONS as implemented

        source = (PROBE.parents[1] / "src" / "model" / "kernels.ts").read_text()
        names = [part.split("] as const")[0] for part in source.split("Names = [")[1:3]]
        declared = {name.strip(" '\n") for part in names for name in part.split(",")} - {""}
        self.assertEqual(set(implemented), declared - {"all-reduce"})

    def test_a_wrong_result_is_found(self):
        import torch

        original = torch.softmax
        with mock.patch.object(torch, "softmax", lambda x, dim: original(x * 1.001, dim)):
            (line,), _ = self.measure([softmax("a")])
        self.assertEqual(line["outcome"], "wrong")
        self.assertIn("float64", line["text"])
        self.assertTrue(line["samples_ns"])

    def test_attention_by_backend(self):
        params = dict(HEADS, new_tokens=13, context=13)
        cases = [case("attention", backend=backend, **params) for backend in ("math", "flash", "cudnn", "nonsense")]
        outcomes = [line["outcome"] for line in self.measure(cases)[0]]
        self.assertEqual(outcomes, ["measured", "measured", "unsupported", "unsupported"])

    def test_operations_that_are_not_available(self):
        cases = [
            case("softmax", "float8", rows=3, columns=64), case("gemm", "int4", m=8, n=8, k=8), case("launch"),
            case("graph-node"), case("host-to-device", bytes=1024, pinned=1),
        ]  # fmt: skip
        for line in self.measure(cases)[0]:
            self.assertEqual((line["outcome"], line["samples_ns"]), ("unsupported", []), line["kernel"])
            self.assertTrue(line["text"])

    def test_inputs_exceed_the_cache(self):
        import inferscope_kernels

        with mock.patch.object(inferscope_kernels, "cache_bytes", lambda _device: 100_000):
            (line,), _ = self.measure([case("copy", bytes=32 << 10)])
        self.assertEqual(line["rotated_bytes"], 5 * 2 * (32 << 10))

    def test_a_narrow_interval_ends_a_case_after_the_minimum_of_runs(self):
        for half_width, runs in ((1000, 10), (0, 40)):
            changes = dict(runs=10, max_runs=40, max_seconds=20, target_half_width=half_width)
            (line,), _ = self.measure([softmax("a")], **changes)
            self.assertEqual(len(line["samples_ns"]), runs)


class Failures(InProcess):
    def test_other_cases_run_after_one_that_is_out_of_memory(self):
        import torch

        original = torch.softmax

        def refuse(x, dim):
            if x.shape[0] == 5:
                raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")
            return original(x, dim)

        with mock.patch.object(torch, "softmax", refuse):
            lines, _ = self.measure([softmax("a"), case("softmax", name="large", rows=5, columns=64), softmax("b")])
        self.assertEqual([line["outcome"] for line in lines], ["measured", "out_of_memory", "measured"])
        self.assertIn("20.00 GiB", lines[1]["text"])
        self.assertEqual(lines[1]["samples_ns"], [])

    def test_a_case_larger_than_the_memory_is_not_run(self):
        large = dict(case("softmax", rows=1 << 20, columns=1 << 24), bytes=2 << 46)
        (line,), _ = self.measure([large])
        self.assertEqual(line["outcome"], "out_of_memory")

    def test_other_cases_run_after_an_exception(self):
        lines, _ = self.measure([case("gemm", m=2), softmax("b")])
        self.assertEqual([line["outcome"] for line in lines], ["failed", "measured"])
        self.assertIn("KeyError", lines[0]["text"])

    def test_order_of_lines_and_progress(self):
        cases = [softmax(name) for name in "cab"]
        lines, sent = self.measure(cases)
        self.assertEqual([line["case"] for line in lines], ["c", "a", "b"])
        self.assertEqual([(line["case"], line["done"], line["total"]) for line in sent], [("c", 0, 3), ("a", 1, 3), ("b", 2, 3), ("b", 3, 3)])

    def test_stopping_between_cases_and_within_one(self):
        calls = []

        def stop():  # once before the first case, then after its first batch
            calls.append(1)
            return len(calls) > 1

        lines, _ = self.measure([softmax("a"), softmax("b")], stop, runs=10**6, max_runs=10**6)
        self.assertEqual([line["outcome"] for line in lines], ["stopped", "stopped"])
        self.assertEqual([line["samples_ns"] for line in lines], [[], []])


class StartsScripts:
    def start(self, script, kernel_order, folder):
        Path(folder, "order.json").write_text(json.dumps(kernel_order))
        env = dict(os.environ, INFERSCOPE_RECORD=os.path.join(folder, "record.jsonl"))
        command = [sys.executable, "-B", "-u", str(PROBE / script), os.path.join(folder, "order.json")]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)

    def lines(self, folder):
        text = Path(folder, "record.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]


class Process(StartsScripts, unittest.TestCase):
    def test_sigint_keeps_finished_cases(self):
        cases = [softmax("a")] + [softmax(str(i)) for i in range(20)]
        with tempfile.TemporaryDirectory() as folder:
            child = self.start("inferscope_kernels.py", order(cases, max_runs=10**6, max_seconds=0.5, target_half_width=0), folder)
            for text in child.stdout:
                if json.loads(text).get("done") == 1:
                    child.send_signal(signal.SIGINT)
                    break
            out, err = child.communicate(timeout=60)
            self.assertEqual(child.returncode, 0, err)
            outcomes = [line["outcome"] for line in self.lines(folder) if line["type"] == "microbenchmark"]
        self.assertEqual(len(outcomes), 21)
        self.assertEqual(outcomes[0], "measured")
        self.assertEqual(set(outcomes[2:]), {"stopped"})
        self.assertEqual(json.loads(out.splitlines()[-1])["done"], 21)

    def test_an_unknown_kernel_is_refused_before_anything_is_measured(self):
        for script, known in (("inferscope_kernels.py", "softmax"), ("inferscope_allreduce.py", "all-reduce")):
            with tempfile.TemporaryDirectory() as folder:
                child = self.start(script, order([softmax("a"), case("fft", n=8)]), folder)
                _, err = child.communicate(timeout=60)
                self.assertEqual(child.returncode, 2, err)
                lines = self.lines(folder)
            self.assertEqual([line for line in lines if line["type"] == "microbenchmark"], [])
            (error,) = [line for line in lines if line["type"] == "error"]
            self.assertIn("fft", error["text"])


class AllReduce(StartsScripts, unittest.TestCase):
    def test_two_ranks_over_gloo(self):
        sizes = (8, 4096, 1 << 20)
        cases = [case("all-reduce", name=str(size), bytes=size, ranks=2) for size in sizes]
        cases += [case("all-reduce", "float8", name="no", bytes=64, ranks=2), case("all-reduce", name="one", bytes=64, ranks=1)]
        with tempfile.TemporaryDirectory() as folder:
            child = self.start("inferscope_allreduce.py", order(cases), folder)
            out, err = child.communicate(timeout=120)
            self.assertEqual(child.returncode, 0, err)
            lines = {line["case"]: line for line in self.lines(folder) if line["type"] == "microbenchmark"}
        self.assertEqual({name: line["outcome"] for name, line in lines.items()}, {
            "8": "measured", "4096": "measured", str(1 << 20): "measured", "no": "unsupported", "one": "unsupported",
        })  # fmt: skip
        for size in sizes:
            self.assertGreaterEqual(len(lines[str(size)]["samples_ns"]), 3)
            self.assertGreater(min(lines[str(size)]["samples_ns"]), 0)
            self.assertLess(lines[str(size)]["max_error"], 1e-6)
            self.assertEqual(lines[str(size)]["backend"], "gloo")
        self.assertEqual(json.loads(out.splitlines()[-1])["done"], 5)

    def test_sigint_ends_all_ranks_together(self):
        cases = [case("all-reduce", name=str(i), bytes=1 << 16, ranks=2) for i in range(3)]
        with tempfile.TemporaryDirectory() as folder:
            child = self.start("inferscope_allreduce.py", order(cases, max_runs=10**6, max_seconds=30, target_half_width=0, runs=10**6), folder)
            for text in child.stdout:
                if json.loads(text)["type"] == "case":
                    child.send_signal(signal.SIGINT)
                    break
            _, err = child.communicate(timeout=25)
            self.assertEqual(child.returncode, 0, err)
            lines = [line for line in self.lines(folder) if line["type"] == "microbenchmark"]
        self.assertEqual([(line["outcome"], line["samples_ns"]) for line in lines], [("stopped", [])] * 3)

    def test_the_cases_of_a_rank_that_dies_fail(self):
        cases = [case("all-reduce", name=str(i), bytes=1 << 16, ranks=2) for i in range(3)]
        with tempfile.TemporaryDirectory() as folder:
            child = self.start("inferscope_allreduce.py", order(cases, max_runs=10**6, max_seconds=30, target_half_width=0), folder)
            for text in child.stdout:
                if json.loads(text).get("type") == "case":
                    break
            ranks = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(child.pid)], capture_output=True, text=True)
            pids = [line.split()[0] for line in ranks.stdout.splitlines() if "spawn_main" in line]
            self.assertEqual(len(pids), 2, ranks.stdout)
            time.sleep(0.5)
            os.kill(int(pids[1]), signal.SIGKILL)
            child.communicate(timeout=60)
            lines = [line for line in self.lines(folder) if line["type"] == "microbenchmark"]
        self.assertEqual([line["outcome"] for line in lines], ["failed"] * 3)
        self.assertIn("SIGKILL", lines[0]["text"])


if __name__ == "__main__":
    unittest.main()
