"""The workloads on the CPU, with a random Llama of two layers."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PYTHON = Path(__file__).resolve().parents[2] / "python"
WORKLOADS, PROBE = PYTHON / "workloads", PYTHON / "inferscope_probe"
SMALL = ["--weights", "random", "--model", "tiny", "--max-tokens", "4", "--input-len", "8", "--dtype", "float32"]


def run(script, *flags, **environment):
    """-> (finished process, record lines)"""
    with tempfile.TemporaryDirectory() as folder:
        record = os.path.join(folder, "record.jsonl")
        done = subprocess.run(
            [sys.executable, str(WORKLOADS / (script + ".py")), *flags],
            env=dict(os.environ, INFERSCOPE_RECORD=record, HF_HUB_OFFLINE="1", HF_HOME=folder, **environment),
            capture_output=True, text=True, timeout=300,
        )
        lines = [json.loads(line) for line in Path(record).read_text().splitlines()] if os.path.exists(record) else []
        return done, lines


class WorkloadTest(unittest.TestCase):
    def test_single_inference(self):
        done, lines = run("single_inference", *SMALL, "--repeats", "2", "--device", "cpu")
        self.assertEqual(done.returncode, 0, done.stderr)
        (row,) = json.loads(done.stdout)["results"]
        self.assertEqual(len(row["tokens"]), 4)
        stages = [line for line in lines if line["type"] == "stage"]
        counts = {kind: sum(s["kind"] == kind and s["warmup"] is False for s in stages) for kind in ("load", "prefill", "decode", "sampling")}
        self.assertEqual(counts, {"load": 1, "prefill": 2, "decode": 6, "sampling": 8})
        self.assertEqual([s["context_tokens_sum"] for s in stages if s["kind"] == "decode"][-3:], [9, 10, 11])
        requests = [line for line in lines if line["type"] == "request"]
        self.assertEqual([r["iteration"] for r in requests], [-1, -2, 0, 1])
        mean = sum((r["end_ns"] - r["first_token_ns"]) / 3 for r in requests if not r["warmup"]) / 2
        self.assertAlmostEqual(row["tpot_ms"], mean / 1e6, places=6)
        self.assertEqual([line["type"] for line in lines if line["type"] in ("clock", "model")], ["clock", "model", "clock"])

    def test_greedy_tokens_are_those_of_transformers_generate(self):
        done, _ = run("single_inference", *SMALL, "--device", "cpu", "--repeats", "1", "--warmups", "0")
        row = json.loads(done.stdout)["results"][0]
        code = (
            "import sys, json; sys.argv = ['x'] + %r; import torch, generation as g;"
            "a = g.make_parser('', 4).parse_args(); m = g.load(a, 'tiny', 'cpu');"
            "p = torch.randint(0, 512, (1, 8), generator=torch.Generator().manual_seed(1000));"
            "o = m.generate(p, max_new_tokens=4, min_new_tokens=4, do_sample=False, eos_token_id=None);"
            "print(json.dumps(o[0, 8:].tolist()))" % (SMALL,)
        )
        oracle = subprocess.run(
            [sys.executable, "-c", code], env=dict(os.environ, PYTHONPATH=str(WORKLOADS)), capture_output=True, text=True
        )
        self.assertEqual(row["tokens"], json.loads(oracle.stdout or "null"), oracle.stderr)

    @unittest.skipUnless(shutil.which("g++"), "torch.compile needs a C++ compiler")
    def test_compile_gives_the_tokens_of_eager(self):
        tokens = {}
        for mode in ("eager", "compile"):
            done, _ = run("single_inference", *SMALL, "--device", "cpu", "--mode", mode, "--repeats", "1")
            self.assertEqual(done.returncode, 0, done.stderr)
            tokens[mode] = json.loads(done.stdout)["results"][0]["tokens"]
        self.assertEqual(tokens["eager"], tokens["compile"])

    def test_batch_sweep(self):
        done, lines = run("batch_sweep", *SMALL, "--batch-size", "1,3", "--repeats", "1", "--device", "cpu")
        self.assertEqual([row["batch_size"] for row in json.loads(done.stdout)["results"]], [1, 3], done.stderr)
        self.assertEqual({l["batch_size"] for l in lines if l["type"] == "request"}, {1, 3})

    def test_model_compare(self):
        done, _ = run("model_compare", *SMALL, "--model", "tiny", "--device", "cpu", "--repeats", "1")
        self.assertEqual(len(json.loads(done.stdout)["results"]), 2, done.stderr)
        done, _ = run("model_compare", *SMALL)
        self.assertEqual(done.returncode, 2)

    def test_deep_dive_warns_if_it_finds_no_gpu(self):
        done, _ = run("deep_dive", *SMALL[:4], "--dtype", "float32", CUDA_VISIBLE_DEVICES="")
        self.assertEqual(len(json.loads(done.stdout)["results"][0]["tokens"]), 8, done.stderr)
        self.assertIn("WARNING: no GPU found, this runs on the CPU", done.stderr)

    def test_cuda_graphs_need_a_gpu(self):
        done, _ = run("single_inference", *SMALL, "--device", "cpu", "--mode", "cudagraph")
        self.assertEqual(done.returncode, 2)
        self.assertIn("CUDA graphs do not exist on the CPU", done.stderr)

    def test_missing_and_gated_models(self):
        done, lines = run("single_inference", "--model", "no-such/model", "--device", "cpu")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no-such/model could not be loaded", done.stderr)
        self.assertIn("--weights random", done.stderr)
        self.assertEqual([l["code"] for l in lines if l["type"] == "error"], ["E_MODEL_NOT_FOUND"])
        sys.path.insert(0, str(PROBE))
        from inferscope_decoder import load_error

        # transformers 5: the text of its OSError for a gated repository without a token
        text = "You are trying to access a gated repo.\nMake sure to have access to it. 401 Client Error."
        self.assertEqual(load_error("meta-llama/x", OSError(text)).code, "E_MODEL_ACCESS")


if __name__ == "__main__":
    unittest.main()
