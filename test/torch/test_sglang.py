"""The steps of SGLang, with stand-ins for its model runner and scheduler (0.5.15)."""

import json
import multiprocessing
import os
import sys
import tempfile
import time
import types
import unittest
from pathlib import Path
from unittest import mock

import torch

PROBE = Path(__file__).resolve().parents[2] / "python" / "inferscope_probe"
sys.path.insert(0, str(PROBE))
import inferscope_sglang as sglang  # noqa: E402


def batch_of(mode, requests, tokens, context):
    """A ForwardBatch. `tokens`: of its input; `context`: the sum of its sequences' lengths."""
    return types.SimpleNamespace(
        forward_mode=types.SimpleNamespace(name=mode), batch_size=requests, seq_lens_sum=context, input_ids=torch.zeros(tokens)
    )


class Config:
    def to_dict(self):
        return {"hidden_size": 8, "_name_or_path": "/models/tiny", "v_head_dim": 4}


class FakeRunner:
    device, gpu_id, tp_rank, is_draft_worker = "cpu", 0, 0, False
    model_config = types.SimpleNamespace(hf_config=Config(), dtype=torch.bfloat16, quantization=None)
    server_args = types.SimpleNamespace(
        model_path="tiny", served_model_name=None, load_format="dummy", tp_size=1, disable_overlap_schedule=False
    )

    def forward(self, batch, pp_proxy_tensors=None):
        if batch is None:
            raise ValueError("no batch")
        return batch.batch_size

    def load_model(self):
        pass

    def init_cuda_graphs(self):
        self.forward(batch_of("DECODE", 1, 1, 1))


class FakeScheduler:
    def __init__(self, record, steps):
        runner = types.SimpleNamespace(ModelRunner=type("ModelRunner", (FakeRunner,), dict(vars(FakeRunner))))
        sglang._on_runner(runner)
        self.runner, self.steps = runner.ModelRunner(), steps
        Path(record + ".started").touch()


def serve(record, steps, waits, environment):
    """A process of SGLang: loads a model, runs the steps, and then waits for its end."""
    os.environ.update(INFERSCOPE_EVALUATOR="none", INFERSCOPE_RECORD=record, **environment)
    module = types.SimpleNamespace(Scheduler=type("Scheduler", (FakeScheduler,), {"__init__": FakeScheduler.__init__}))
    sglang._on_scheduler(module)
    scheduler = module.Scheduler(record, steps)
    scheduler.runner.load_model()
    scheduler.runner.init_cuda_graphs()
    for step in steps:
        assert scheduler.runner.forward(batch_of(*step)) == step[1]
    Path(record + ".ready").touch()
    while waits:
        time.sleep(0.01)


def lines_of(record):
    return [json.loads(line) for line in Path(record).read_text().splitlines()] if os.path.exists(record) else []


PROMPTS = [("EXTEND", 2, 10, 10), ("EXTEND", 2, 6, 16)]  # in two chunks
STEPS = [*PROMPTS, ("DECODE", 2, 2, 18), ("MIXED", 3, 9, 27), ("TARGET_VERIFY", 2, 8, 20), ("IDLE", 0, 0, 0), ("EXTEND", 1, 5, 5)]


class StepsTest(unittest.TestCase):
    def run_process(self, steps, **environment):
        with tempfile.TemporaryDirectory() as folder:
            record = os.path.join(folder, "record.jsonl")
            process = multiprocessing.get_context("spawn").Process(target=serve, args=(record, steps, False, environment))
            process.start()
            process.join(120)
            self.assertEqual(process.exitcode, 0)
            return lines_of(record)

    def test_batches_are_steps_with_their_sizes(self):
        lines = self.run_process(STEPS)
        stages = [line for line in lines if line["type"] == "stage"]
        sizes = [(line["kind"], line["batch_size"], line["new_tokens"], line["context_tokens_sum"]) for line in stages]
        self.assertEqual(
            sizes,
            [
                ("load", None, None, None), ("warmup", None, None, None),
                ("prefill", 2, 10, 10), ("prefill", 2, 6, 16), ("decode", 2, 2, 18), ("mixed", 3, 9, 27),
                ("decode", 2, 8, 28),  # the drafts follow 20 tokens in the cache
                ("prefill", 1, 5, 5),
            ],
        )  # fmt: skip
        self.assertEqual([line["iteration"] for line in stages[2:]], [0, 0, 0, 0, 0, 1])
        self.assertEqual({line["marked_by"] for line in stages}, {"hooks"})

    def test_the_first_rank_records_the_model_once(self):
        (model,) = [line for line in self.run_process([]) if line["type"] == "model"]
        self.assertEqual((model["engine"]["name"], model["name"], model["dtype"], model["weights"]), ("sglang", "tiny", "bfloat16", "random"))
        self.assertEqual(model["config"], {"hidden_size": 8})
        self.assertEqual(model["facts"]["async_scheduling"], True)

    def test_a_killed_process_first_writes_its_last_steps(self):
        with tempfile.TemporaryDirectory() as folder:
            record = os.path.join(folder, "record.jsonl")
            process = multiprocessing.get_context("spawn").Process(target=serve, args=(record, STEPS, True, {}), daemon=True)
            process.start()
            deadline = time.monotonic() + 120
            while not os.path.exists(record + ".ready") and time.monotonic() < deadline:
                time.sleep(0.05)
            killed = []
            utils = types.SimpleNamespace(kill_process_tree=lambda *values, **_: killed.append(values))
            sglang._on_utils(utils)
            sglang._on_utils(utils)  # both of its modules may be imported
            with mock.patch("inferscope_vllm_end.GRACE_S", 60):
                utils.kill_process_tree(os.getpid(), False)
            process.join(60)
            self.assertEqual(killed, [(os.getpid(), False)])
            self.assertEqual(process.exitcode, 0)
            self.assertEqual(sum(line["type"] == "stage" for line in lines_of(record)), 8)

    def test_other_process_trees_are_killed_at_once(self):
        killed = []
        utils = types.SimpleNamespace(kill_process_tree=lambda *values: killed.append(values))
        sglang._on_utils(utils)
        with mock.patch.object(sglang, "_end_children", side_effect=AssertionError):
            utils.kill_process_tree(1)
        self.assertEqual(killed, [(1,)])

    def test_an_error_of_the_program_and_of_the_hooks(self):
        module = types.SimpleNamespace(ModelRunner=type("ModelRunner", (FakeRunner,), dict(vars(FakeRunner))))
        sglang._on_runner(module)
        with mock.patch.object(sglang, "records_batches", lambda: True), mock.patch.object(sglang, "warn") as warn:
            with self.assertRaisesRegex(ValueError, "no batch"):
                module.ModelRunner().forward(None)
            self.assertEqual(module.ModelRunner().forward(batch_of("DECODE", 2, 2, 3)), 2)
        self.assertEqual(warn.call_count, 1)
        sglang._failed = False

    def test_nothing_is_watched_without_hooks(self):
        for environment in ({"INFERSCOPE_HOOKS": "off"}, {"INFERSCOPE_EXECUTION_ID": "clean"}):
            with mock.patch.dict(os.environ, environment), mock.patch.object(sglang, "after_import") as after_import:
                sglang.watch_runners()
                after_import.assert_not_called()


if __name__ == "__main__":
    unittest.main()
