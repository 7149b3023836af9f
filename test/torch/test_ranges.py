"""Stages as ranges: of the transformers engine under the torch probe, and of stand-ins for vLLM's workers."""

import gzip
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

PROBE = Path(__file__).resolve().parents[2] / "python" / "inferscope_probe"
sys.path.insert(0, str(PROBE))
POINT = dict(point="b2-p8-o4", parts=["latency"], batch_size=2, input_len=8, output_len=4)
ORDER = dict(
    v=1, execution_id="clean", launch=0, first_iteration=3, model="tiny", weights="random", dtype="float32", device="cpu",
    engine_args={"threads": "1"}, points=[POINT], repeats=2, warmup={"min": 1, "max": 1, "within": 0.05}, device_work=False, seed=0,
)


class EngineTest(unittest.TestCase):
    """The engine's process as started by `run --evaluator torch -- inferscope bench`; its own record is the
    reference.
    """

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "order.json")
            Path(path).write_text(json.dumps(ORDER))
            environment = dict(
                os.environ, PYTHONPATH=str(PROBE), INFERSCOPE_EVALUATOR="torch", INFERSCOPE_EXECUTION_ID="clean",
                INFERSCOPE_TORCH_TRACE=os.path.join(folder, "traces"), INFERSCOPE_RECORD=os.path.join(folder, "record.jsonl"),
            )
            engine = str(PROBE / "inferscope_engine.py")
            done = subprocess.run([sys.executable, "-B", engine, path], env=environment, capture_output=True, text=True, timeout=240)
            assert done.returncode == 0, done.stderr
            cls.progress = [json.loads(line) for line in done.stdout.splitlines()]
            (trace,) = Path(folder, "traces").glob("*.json.gz")
            with gzip.open(trace, "rt") as text:
                cls.trace = json.load(text)
            cls.lines = [json.loads(line) for line in Path(folder, "record.jsonl").read_text().splitlines()]

    def ranges(self):
        events = [event for event in self.trace["traceEvents"] if event.get("cat") == "user_annotation"]
        return [(event["name"], event["ts"], event["ts"] + event["dur"]) for event in sorted(events, key=lambda event: event["ts"])]

    def test_load_warmup_and_timed_stages_in_order(self):
        def generation(iteration):
            steps = [(kind, step) for step in range(3) for kind in ("decode", "sampling")]
            inside = ["inferscope:%s:%d:%d" % (kind, iteration, step + (kind == "sampling")) for kind, step in steps]
            return ["inferscope:prefill:%d:0" % iteration, "inferscope:sampling:%d:0" % iteration] + inside

        expected = ["inferscope:load:0:0", "inferscope:warmup:-1:0"] + generation(-1) + generation(3) + generation(4)
        self.assertEqual([name for name, _, _ in self.ranges() if name.startswith("inferscope:")], expected)

    def test_ranges_agree_with_the_stages_of_the_record(self):
        stages = {line["name"]: line for line in self.lines if line["type"] == "stage"}
        clock = next(line for line in self.lines if line["type"] == "clock")
        # Trace times are µs since its base, record times ns of CLOCK_MONOTONIC.
        offset = int(clock["realtime_ns"]) - clock["t_ns"] - int(self.trace.get("baseTimeNanoseconds", 0))
        differences = []
        for name, begin, end in self.ranges():
            if name in stages:
                differences += [abs(begin * 1e3 - stages[name]["t_ns"] - offset), abs(end * 1e3 - stages[name]["end_ns"] - offset)]
        self.assertEqual(len(differences), 2 * (1 + 3 * 4))
        # On a busy machine the process may be descheduled between the two.
        self.assertLess(sorted(differences)[len(differences) // 2], 1e6)
        self.assertLess(max(differences), 1e9)

    def test_warmup_contains_the_repeats_with_negative_numbers(self):
        (warmup,) = [range_ for range_ in self.ranges() if range_[0].startswith("inferscope:warmup")]
        for name, begin, end in self.ranges():
            if name.startswith(("inferscope:prefill", "inferscope:decode")):
                self.assertEqual(warmup[1] <= begin and end <= warmup[2], ":-1:" in name, name)

    def test_ranges_contain_operators_and_only_the_engine_records(self):
        linear = [event["ts"] for event in self.trace["traceEvents"] if event.get("name") == "aten::linear"]
        decode = [range_ for range_ in self.ranges() if range_[0].startswith("inferscope:decode:3")]
        # 2 layers of q, k, v, o, gate, up, down, and the head.
        self.assertEqual([sum(begin <= time < end for time in linear) for _, begin, end in decode], [2 * 7 + 1] * 3)
        self.assertEqual(len([line for line in self.lines if line["type"] == "model"]), 1)
        self.assertEqual([line["outcome"] for line in self.progress if line["type"] == "point"], ["measured"])


def scheduled(new, cached, in_prefill=()):
    """A vllm.v1.core.sched.output.SchedulerOutput: {request: tokens} of new and of earlier ones."""
    return types.SimpleNamespace(
        scheduled_new_reqs=[types.SimpleNamespace(req_id=name) for name in new],
        scheduled_cached_reqs=types.SimpleNamespace(is_context_phase=lambda name: name in in_prefill),
        num_scheduled_tokens={**new, **cached},
    )


class VllmTest(unittest.TestCase):
    def setUp(self):
        import inferscope_vllm_ranges

        self.module = inferscope_vllm_ranges

    def test_batches_are_named_as_vllm_names_them(self):
        name = self.module.batch_name
        self.assertEqual(name(scheduled({"a": 16}, {})), "execute_context_1(16)_generation_0(0)")
        self.assertEqual(name(scheduled({}, {"a": 1, "b": 1})), "execute_context_0(0)_generation_2(2)")
        # A chunk of a long prompt is prefill; three drafts of a request are generation.
        self.assertEqual(name(scheduled({"c": 5}, {"a": 64, "b": 3}, {"a"})), "execute_context_2(69)_generation_1(3)")
        self.assertIsNone(name(scheduled({}, {})))

    def test_names_of_batches_contain_the_attended_tokens_if_vllm_reports_them(self):
        # Counted as in vLLM 0.26: a chunk of 5 after 64 cached (prefix), one of 64 after 100, one token after 200.
        batch = scheduled({"c": 5}, {"a": 64, "b": 1}, {"a"})
        batch.scheduled_new_reqs[0].num_computed_tokens = 64
        batch.scheduled_cached_reqs.req_ids = ["a", "b"]
        batch.scheduled_cached_reqs.num_computed_tokens = [100, 200]
        counts = (70, 2, 5 + 64, 69 + 164, 25 + 4096, 5 * 69 + 64 * 164, 1, 1, 201, 1, 201)
        self.assertEqual(
            self.module.batch_name(batch), "execute_%d_context_%d(sq%dsk%dsqsq%dsqsk%d)_generation_%d(sq%dsk%dsqsq%dsqsk%d)" % counts
        )

    def worker(self):
        """The part of vllm.v1.worker.gpu_worker (0.26) that describes the model."""
        hf = {"model_type": "llama", "num_hidden_layers": 22, "hidden_size": 2048, "_name_or_path": "/models/tiny"}
        model = types.SimpleNamespace(
            hf_config=types.SimpleNamespace(to_dict=lambda: dict(hf)), dtype="torch.bfloat16", quantization=None, model="/models/tiny",
            served_model_name="tiny",
        )
        config = types.SimpleNamespace(
            model_config=model, load_config=types.SimpleNamespace(load_format="dummy"), parallel_config=types.SimpleNamespace(tensor_parallel_size=2),
            scheduler_config=types.SimpleNamespace(async_scheduling=True, max_num_seqs=64),
            device_config=types.SimpleNamespace(device_type="cuda"),
        )
        return types.SimpleNamespace(vllm_config=config, device=types.SimpleNamespace(type="cuda"))

    def recorded(self, **environment):
        import inferscope_vllm_model

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "record.jsonl")
            with mock.patch.dict(os.environ, INFERSCOPE_RECORD=path, **environment):
                inferscope_vllm_model.record_loaded_model(self.worker())
            return [json.loads(line) for line in Path(path).read_text().splitlines()] if os.path.exists(path) else []

    def test_the_first_rank_reports_the_model(self):
        clock, model = self.recorded(RANK="0")
        self.assertEqual((clock["type"], model["type"]), ("clock", "model"))
        self.assertEqual(
            {key: model[key] for key in ("name", "dtype", "quantization", "weights", "device", "tensor_parallel_size", "facts")},
            {
                "name": "tiny", "dtype": "bfloat16", "quantization": None, "weights": "random", "device": "cuda", "tensor_parallel_size": 2,
                "facts": {"async_scheduling": True, "max_num_seqs": 64},
            },
        )
        self.assertEqual(model["config"], {"model_type": "llama", "num_hidden_layers": 22, "hidden_size": 2048})
        self.assertEqual(model["engine"]["name"], "vllm")

    def test_other_ranks_and_our_own_engine_do_not(self):
        self.assertEqual(self.recorded(RANK="1"), [])
        self.assertEqual(self.recorded(RANK="0", INFERSCOPE_EXECUTION_ID="clean"), [])

    def run_main(self, text):
        """The result of is_below_main_guard in a program with this text, run in a separate process."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.py")
            Path(path).write_text("import sys\nsys.path.insert(0, %r)\nimport inferscope_vllm_ranges as r\n%s" % (str(PROBE), text))
            return subprocess.run([sys.executable, "-B", path], capture_output=True, text=True, timeout=60).stdout.strip()

    def test_a_program_below_its_guard_may_be_spawned(self):
        start = "def start(): print(r.is_below_main_guard())\n"
        self.assertEqual(self.run_main(start + "if __name__ == '__main__':\n    start()\n"), "True")
        self.assertEqual(self.run_main(start + "if '__main__' == __name__ and True:\n    x = 1\n    start()\n"), "True")
        # Code at top level, and a guard elsewhere in the file: importing it again would start a second engine.
        self.assertEqual(self.run_main(start + "start()\nif __name__ == '__main__':\n    pass\n"), "False")
        self.assertEqual(self.run_main(start + "if __name__ != '__main__':\n    pass\nelse:\n    start()\n"), "False")

    def test_vllm_spawns_below_a_guard_unless_the_user_chose_a_method(self):
        method = "VLLM_WORKER_MULTIPROC_METHOD"
        cases = (("nsys", True, None, "spawn"), ("nsys", False, None, None), ("ncu", True, "fork", "fork"), ("torch", True, None, None))
        for evaluator, is_below_guard, method_of_user, expected in cases:
            module = types.SimpleNamespace(get_mp_context=lambda: os.environ.get(method))
            environment = {"INFERSCOPE_EVALUATOR": evaluator, **({method: method_of_user} if method_of_user else {})}
            with mock.patch.dict(os.environ, environment), mock.patch.object(self.module, "is_below_main_guard", lambda: is_below_guard):
                if method_of_user is None:
                    os.environ.pop(method, None)
                self.module._on_engine(module)
                self.assertEqual(module.get_mp_context(), expected)

    def test_our_own_engine_spawns_under_nsys(self):
        method = "VLLM_WORKER_MULTIPROC_METHOD"
        for evaluator, expected in (("nsys", "spawn"), ("ncu", "spawn"), ("none", None)):
            with mock.patch.dict(os.environ, INFERSCOPE_EVALUATOR=evaluator):
                os.environ.pop(method, None)
                self.module.spawn_processes()
                self.assertEqual(os.environ.get(method), expected)

    def worker_module(self):
        """Stand-ins for two watched classes of vllm.v1.worker.gpu_worker (0.26) with empty methods."""
        worker = types.ModuleType("vllm.v1.worker.gpu_worker")
        exec(
            "class Worker:\n"
            "    device = None\n"
            "    def load_model(self): return 'loaded'\n"
            "    def compile_or_warm_up_model(self):\n"
            "        self.execute_model(self.own_batch)\n"
            "        self.sample_tokens(None)\n"
            "        return 1\n"
            "    def execute_model(self, scheduled): return scheduled.num_scheduled_tokens\n"
            "    def sample_tokens(self, grammar): return grammar\n"
            "    def shutdown(self): return 'gone'\n"
            "class Overriding(Worker):\n"
            "    def compile_or_warm_up_model(self): return 1 + super().compile_or_warm_up_model()\n",
            worker.__dict__,
        )
        for kind in (worker.Worker, worker.Overriding):
            kind.__module__ = worker.__name__
        self.module._on_worker(worker)
        return worker

    def test_without_an_evaluator_batches_are_lines_of_the_record(self):
        def batch(new, cached, computed):
            made = scheduled(new, cached)
            for request in made.scheduled_new_reqs:
                request.num_computed_tokens = 0
            made.scheduled_cached_reqs.req_ids, made.scheduled_cached_reqs.num_computed_tokens = list(cached), computed
            return made

        def serve(is_killed):
            vllm_worker = self.worker_module().Overriding()
            vllm_worker.own_batch = scheduled({"_v2_mixed_warmup_prefill_": 16}, {})
            vllm_worker.load_model()
            vllm_worker.compile_or_warm_up_model()
            for scheduled_batch in (batch({"a": 8}, {}, []), batch({"b": 6}, {"a": 1}, [8]), batch({}, {"a": 1, "b": 1}, [9, 6]), batch({"c": 5}, {}, [])):
                self.assertEqual(vllm_worker.execute_model(scheduled_batch), scheduled_batch.num_scheduled_tokens)
                vllm_worker.sample_tokens(None)
            self.assertEqual(vllm_worker.execute_model(batch({}, {}, [])), {})
            if is_killed:
                vllm_worker.shutdown()
                os.kill(os.getpid(), signal.SIGKILL)

        for is_killed in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "record.jsonl")
                with mock.patch.dict(os.environ, INFERSCOPE_EVALUATOR="none", INFERSCOPE_RECORD=path), mock.patch.object(
                    self.module, "record_loaded_model", lambda worker: None
                ):
                    # Like vLLM's engine core by default: forked, and exits with os._exit.
                    process = multiprocessing.get_context("fork").Process(target=serve, args=(is_killed,))
                    process.start()
                    process.join(60)
                lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
            self.assertEqual(process.exitcode, -signal.SIGKILL if is_killed else 0)
            self.assertEqual([line["type"] for line in lines if line["type"] != "stage"], ["clock", "clock"])
            keys = ("kind", "iteration", "step", "batch_size", "new_tokens", "context_tokens_sum", "device_dur_ns")
            self.assertEqual(
                [tuple(line[key] for key in keys) for line in lines if line["type"] == "stage" and line["kind"] != "sampling"],
                [
                    ("load", 0, 0, None, None, None, None),
                    ("warmup", 0, 0, None, None, None, None),
                    ("prefill", 0, 0, 1, 8, 8, None),
                    ("mixed", 0, 1, 2, 7, 15, None),
                    ("decode", 0, 2, 2, 2, 17, None),
                    ("prefill", 1, 0, 1, 5, 5, None),
                ],
            )
            self.assertEqual(sum(line.get("kind") == "sampling" for line in lines), 4)

    def test_batches_are_not_recorded_in_our_own_engine_or_without_hooks(self):
        import inferscope_batches

        environment = dict(INFERSCOPE_EVALUATOR="none", INFERSCOPE_RECORD="record.jsonl")
        for more, expected in (({}, True), ({"INFERSCOPE_EXECUTION_ID": "clean"}, False), ({"INFERSCOPE_HOOKS": "off"}, False), ({"INFERSCOPE_EVALUATOR": "nsys"}, False)):
            with mock.patch.dict(os.environ, {**environment, **more}):
                self.assertEqual(inferscope_batches.records_batches(), expected, more)

    def test_a_worker_in_a_separate_process_is_marked(self):
        import torch

        worker = self.worker_module()
        vllm_worker = worker.Overriding()
        # Like the warm-up of vLLM 0.26: its own request through the worker's methods, which is not a batch.
        vllm_worker.own_batch = scheduled({"_v2_mixed_warmup_prefill_": 16}, {})
        with mock.patch.dict(os.environ, INFERSCOPE_EVALUATOR="nsys"), torch.profiler.profile() as profile:
            self.assertEqual((vllm_worker.load_model(), vllm_worker.compile_or_warm_up_model()), ("loaded", 2))
            for batch in (scheduled({"warmup-x-0": 8}, {}), scheduled({}, {"warmup-x-0": 1}), scheduled({"x-1": 8}, {})):
                self.assertEqual(vllm_worker.execute_model(batch), batch.num_scheduled_tokens)
                self.assertIsNone(vllm_worker.sample_tokens(None))
        events = sorted(profile.events(), key=lambda event: event.time_range.start)
        names_and_parents = [(event.name, event.cpu_parent.name if event.cpu_parent else None) for event in events if ":" in event.name or "_" in event.name]
        warmup, batch = "inferscope:warmup:-1:0", "execute_context_%d(%d)_generation_%d(%d)"
        self.assertEqual(
            [pair for pair in names_and_parents if pair[0].startswith(("inferscope", "execute"))],
            [
                ("inferscope:load:0:0", None),
                (warmup, None),
                (warmup, None),
                (batch % (1, 8, 0, 0), warmup),
                ("inferscope:sampling", warmup),
                (batch % (0, 0, 1, 1), warmup),
                ("inferscope:sampling", warmup),
                (batch % (1, 8, 0, 0), None),
                ("inferscope:sampling", None),
            ],
        )

    def test_without_an_evaluator_a_worker_marks_nothing(self):
        calls = []
        with mock.patch.object(self.module, "range_opener", lambda: calls.append(1)):
            wrapped = self.module._mark_method(lambda self, batch: batch, "execute_model", self.module.batch_name)
            self.assertEqual(wrapped(None, 7), 7)
        self.assertEqual(calls, [])

    def test_vllms_processes_get_time_to_write_traces(self):
        joined = []

        def shutdown(processes, timeout=None):
            joined.append((processes, timeout))

        module = types.SimpleNamespace(shutdown=shutdown)
        self.module._on_engine(module)
        module.shutdown(["core"])
        module.shutdown(["core"], timeout=600.0)
        self.assertEqual(joined, [(["core"], 120), (["core"], 600.0)])
        older = types.SimpleNamespace(shutdown=lambda processes, address: None)
        before = older.shutdown
        self.module._on_engine(older)
        self.assertIs(older.shutdown, before)

    def test_vllms_processes_get_time_to_write_traces_under_nsys(self):
        timeout = "VLLM_WORKER_SHUTDOWN_TIMEOUT_SECONDS"
        for evaluator, expected in (("nsys", "120"), ("none", None)):
            with mock.patch.dict(os.environ, INFERSCOPE_EVALUATOR=evaluator), mock.patch.object(self.module, "after_import"):
                os.environ.pop(timeout, None)
                self.module.watch_workers()
                self.assertEqual(os.environ.get(timeout), expected)


if __name__ == "__main__":
    unittest.main()
