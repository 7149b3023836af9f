"""The memory that the transformers engine reports on the CPU, compared with sizes computed by hand from the
dimensions.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROBE = Path(__file__).resolve().parents[2] / "python" / "inferscope_probe"
sys.path.insert(0, str(PROBE))
ENGINE = str(PROBE / "inferscope_engine.py")

# The bundled `tiny`: hidden 64, inner 128, 2 layers, 4 heads of 16, 2 KV heads, vocabulary 512.
LAYER = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128
PARAMETERS = 2 * 512 * 64 + 2 * (LAYER + 2 * 64) + 64
KV_TOKEN = 2 * 2 * 2 * 16  # K and V, layers, KV heads, head_dim


def run(ranks=1, **changes):
    """-> the engine's record lines"""
    point = dict(point="b3-p8-o4", parts=["latency"], batch_size=3, input_len=8, output_len=4)
    order = dict(
        v=1, execution_id="memory", launch=0, first_iteration=0, model="tiny", weights="random", dtype="float16", device="cpu",
        engine_args={"threads": "1"}, points=[point], repeats=1, warmup={"min": 1, "max": 1, "within": 0.05}, device_work=False,
        seed=0, memory={"snapshot": False},
    )
    order.update(changes)
    with tempfile.TemporaryDirectory() as folder:
        path, record = os.path.join(folder, "order.json"), os.path.join(folder, "record.jsonl")
        Path(path).write_text(json.dumps(order), encoding="utf8")
        torchrun = ["-m", "torch.distributed.run", "--standalone", "--nnodes=1", "--nproc-per-node=%d" % ranks] if ranks > 1 else []
        done = subprocess.run(
            [sys.executable, "-B", *torchrun, ENGINE, path], env=dict(os.environ, INFERSCOPE_RECORD=record), capture_output=True, timeout=120
        )
        assert done.returncode == 0, done.stderr.decode()[-2000:]
        with open(record) as text:
            return [json.loads(line) for line in text]


def reported_bytes(lines, kind, rank=0):
    return [line["bytes"] for line in lines if line["type"] == "memory" and line["kind"] == kind and line["rank"] == rank]


class MemoryTest(unittest.TestCase):
    def test_tensors_are_counted_by_kind_and_stage(self):
        lines = run()
        self.assertEqual(reported_bytes(lines, "weights:load:float16"), [2 * PARAMETERS])
        # 3 sequences of 8 tokens after the prompt; the last of 4 new tokens is never fed back.
        self.assertEqual(reported_bytes(lines, "kv_cache:prefill:float16"), [3 * 8 * KV_TOKEN * 2])
        self.assertEqual(reported_bytes(lines, "kv_cache:decode:float16"), [3 * 11 * KV_TOKEN * 2])
        points = [(line["kind"], line["point"]) for line in lines if line["type"] == "memory" and line["point"]]
        self.assertEqual(points, [("rss:baseline", "baseline"), ("rss:post_warmup", "post_warmup"), ("peak_rss", "peak")])
        peak = reported_bytes(lines, "peak_rss")[0]
        self.assertGreaterEqual(peak, reported_bytes(lines, "rss:post_warmup")[0])

    def test_a_benchmark_reports_none_of_it(self):
        lines = run(memory=None)
        self.assertEqual([line for line in lines if line["type"] == "memory"], [])

    def test_two_ranks_have_half_of_the_cache_and_one_reports_the_times(self):
        lines = run(ranks=2)
        for rank in (0, 1):
            self.assertEqual(reported_bytes(lines, "kv_cache:prefill:float16", rank), [3 * 8 * KV_TOKEN * 2 // 2])
            self.assertLess(reported_bytes(lines, "weights:load:float16", rank)[0], 2 * PARAMETERS)
        requests = [line for line in lines if line["type"] == "request"]
        self.assertEqual([(line["rank"], line["warmup"]) for line in requests], [(0, True), (0, False)])
        self.assertEqual({line["rank"] for line in lines if line["type"] == "memory"}, {0, 1})
        model = [line for line in lines if line["type"] == "model"]
        self.assertEqual([line["tensor_parallel_size"] for line in model], [2])


class SnapshotTest(unittest.TestCase):
    """A history of the allocator written by hand, in the form of torch.cuda.memory._snapshot()["device_traces"]."""

    def test_allocations_alive_at_the_peak_by_place(self):
        import torch
        from inferscope_memory import live_at_peak

        torch_file = os.path.join(os.path.dirname(torch.__file__), "nn", "modules", "linear.py")
        model = {"filename": "/x/site-packages/transformers/modeling_llama.py", "line": 172, "name": "forward"}
        linear = [{"filename": torch_file, "line": 134, "name": "forward"}, model]

        def event(action, addr, size, frames=None):
            return {"action": action, "addr": addr, "size": size, "frames": frames or []}

        trace = [
            event("alloc", 1, 100, linear),
            event("alloc", 2, 50, [model]),
            event("free_requested", 9, 30),  # alive before the trace
            event("alloc", 3, 200, linear),  # the peak: 1000 + 100 + 50 - 30 + 200
            event("free_requested", 3, 200),
            event("alloc", 4, 150, [model]),
        ]
        self.assertEqual(
            live_at_peak(trace, 1000),
            {
                "modeling_llama.py:172 forward, in linear.py": (300, 2),
                "modeling_llama.py:172 forward": (50, 1),
                "held before (model, earlier cache)": (970, 0),
            },
        )


if __name__ == "__main__":
    unittest.main()
