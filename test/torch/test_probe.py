"""The probe in unmodified programs: the traces are torch's own and contain the program's work."""

import gzip
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROBE = HERE.parents[1] / "python" / "inferscope_probe"
# A Llama of 2 layers, each with q, k, v, o, gate, up and down, and the head; 1 prefill and 2 decode steps.
LINEAR_CALLS = 3 * (2 * 7 + 1)


def run(arguments, options=None, path=str(PROBE), program=str(HERE / "program.py")):
    """-> (finished process, traces, record lines)"""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(
            os.environ,
            PYTHONPATH=path,
            INFERSCOPE_TORCH_TRACE=os.path.join(folder, "traces"),
            INFERSCOPE_TORCH_OPTIONS=json.dumps(dict({"device": "cpu"}, **(options or {}))),
            INFERSCOPE_RECORD=os.path.join(folder, "record.jsonl"),
        )
        done = subprocess.run(
            [sys.executable, *([program] if program else []), *arguments],
            env=environment, capture_output=True, text=True, timeout=120,
        )
        traces = []
        for file in sorted(Path(folder, "traces").glob("[!n]*")):
            if not file.name.endswith(".json.gz"):
                raise AssertionError("unexpected file: %s" % file.name)
            with gzip.open(file, "rt") as text:
                traces.append(json.load(text))
        record = Path(folder, "record.jsonl")
        lines = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
        return done, traces, lines


def names(trace, category):
    return [event["name"] for event in trace["traceEvents"] if event.get("cat") == category]


class ProbeTest(unittest.TestCase):
    def check_exit(self, how, code):
        done, traces, lines = run([how])
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertTrue(done.stdout.startswith("computed\n"), done.stdout)
        self.assertEqual(len(traces), 1, done.stderr)
        self.assertEqual(names(traces[0], "cpu_op").count("aten::linear"), LINEAR_CALLS)
        marks = names(traces[0], "user_annotation")
        self.assertEqual(marks, ["inferscope:prefill:0:0", "inferscope:decode:0:0", "inferscope:decode:0:1"])
        self.assertEqual([line["type"] for line in lines], ["clock", "model", "clock"])
        return done, lines

    def test_normal_exit(self):
        _, lines = self.check_exit("end", 0)
        model = lines[1]
        self.assertEqual(model["config"]["hidden_size"], 64)
        # 2 x vocab x hidden, per layer 2 x 64 x 64 + 2 x 64 x 32 + 3 x 64 x 128 + 2 x 64, the last norm; 4 bytes
        # each.
        self.assertEqual(model["weight_bytes"], 4 * (2 * 512 * 64 + 2 * (8192 + 4096 + 24576 + 128) + 64))
        self.assertLess(lines[0]["t_ns"], lines[2]["t_ns"])

    def test_sys_exit(self):
        self.check_exit("exit", 3)

    def test_exception(self):
        done, _ = self.check_exit("exception", 1)
        self.assertIn("ValueError: the program's own", done.stderr)

    def test_sigterm(self):
        self.check_exit("SIGTERM", -15)

    def test_keyboard_interrupt(self):
        done, _ = self.check_exit("SIGINT", -2)
        self.assertIn("KeyboardInterrupt", done.stderr)

    def test_os_exit(self):
        self.check_exit("_exit", 5)

    def test_fork(self):
        done, _ = self.check_exit("fork", 0)
        self.assertIn("child 7", done.stdout)

    def test_child_processes_write_separate_files(self):
        done, traces, _ = run(["spawn"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted("aten::linear" in names(trace, "cpu_op") for trace in traces), [False, True])

    def test_a_profiler_of_the_program_ends_the_trace(self):
        done, traces, _ = run(["own profiler"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("own True", done.stdout)
        self.assertIn("profiler of its own", done.stderr)
        self.assertEqual(names(traces[0], "cpu_op").count("aten::linear"), LINEAR_CALLS)

    def test_limit(self):
        done, traces, _ = run(["long"], {"max_seconds": 1, "capture": "range:long"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("its limit of 1 s is reached", done.stderr)
        self.assertEqual(len(traces), 1)

    def test_capture_range(self):
        _, traces, _ = run(["end"], {"capture": "range:inferscope:decode"})
        self.assertEqual(len(traces), 2)
        for trace in traces:
            self.assertEqual(names(trace, "cpu_op").count("aten::linear"), 2 * 7 + 1)

    def test_options(self):
        # Only torch, because with stacks the import of transformers takes hundreds of MB of trace.
        code = "import torch; torch.nn.Linear(64, 64)(torch.zeros(1, 8, 64))"
        _, (trace,), _ = run(["-c", code], {"shapes": True, "stack": True, "memory": True}, program=None)
        self.assertTrue(names(trace, "python_function"))
        shapes = [e["args"]["Input Dims"] for e in trace["traceEvents"] if e["name"] == "aten::linear"]
        self.assertEqual(shapes[0][:2], [[1, 8, 64], [64, 64]])
        self.assertTrue([e for e in trace["traceEvents"] if e["name"] == "[memory]"])

    def test_names_that_are_invalid_json_are_repaired(self):
        sys.path.insert(0, str(PROBE))
        from inferscope_torch_json import repair_lines

        line = b'    "ph": "X", "cat": "python_function", "name": "%s", "pid": 4965, "tid": 4965,\n'
        quotes = b'anyio/_lazyimport.py(0):     """'
        for name in (quotes, rb"C:\new\x.py(3): f"):
            repaired = repair_lines(line % name).decode().strip().rstrip(",")
            self.assertEqual(json.loads("{%s}" % repaired)["name"], name.decode())
        for valid in (line % b"torch/nn/module.py(12): forward", line % rb"a \"quoted\" one", b'  "ts": 1.5, "dur": 2,\n'):
            self.assertEqual(repair_lines(valid), valid)

    def test_a_program_without_torch(self):
        done, traces, lines = run(["-c", "import sys; print('torch' in sys.modules)"], program=None)
        self.assertEqual((done.stdout, done.stderr, traces, lines), ("False\n", "", [], []))

    def test_starts_without_subprocess(self):
        # ncu's embedded Python runs sitecustomize, too, and has no subprocess module.
        environment = {**os.environ, "PYTHONPATH": str(PROBE), "INFERSCOPE_EVALUATOR": "ncu"}
        command = [sys.executable, "-c", "import sys; print('subprocess' in sys.modules)"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        self.assertEqual((done.stdout, done.stderr), ("False\n", ""))

    def test_an_existing_sitecustomize_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "sitecustomize.py").write_text("print('theirs')\n")
            done, _, _ = run(["-c", "print('program')"], path=str(PROBE) + os.pathsep + folder, program=None)
        self.assertEqual(done.stdout, "theirs\nprogram\n", done.stderr)

    def test_a_failing_probe_prints_one_line(self):
        done, traces, _ = run(["end"], {"max_seconds": "soon"})
        self.assertEqual((done.returncode, done.stdout), (0, "computed\n"), done.stderr)
        self.assertIn("inferscope: probe:", done.stderr)
