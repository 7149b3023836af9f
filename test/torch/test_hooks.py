"""Hooks in PyTorch programs without marks: their stages, and that the programs are unaffected."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROBE = HERE.parents[1] / "python" / "inferscope_probe"


PROGRAMS = (
    "dense", "moe", "mamba", "continuous", "t5", "static", "static_loop", "assisted", "loop", "no_cache", "compiled", "compiled_whole", "load",
    "training", "raises", "own_record", "fault", "own_module", "own_module_without_cache", "two_modules", "encoder_of_torch",
    "frames", "compiled_in_place", "traced", "layers_one_by_one", "pipeline_stage", "pipeline_layers", "cropped", "inner_model", "compiled_function", "compiled_closure", "bert", "encoder_and_decoder", "whisper", "lora", "autocast", "dynamic_int8", "torchao_int8",
)


def start(hooks, folder):
    environment = dict(
        os.environ, PYTHONPATH=str(PROBE), INFERSCOPE_EVALUATOR="none", INFERSCOPE_HOOKS=hooks,
        INFERSCOPE_RECORD=os.path.join(folder, "record-%s.jsonl" % hooks),
    )
    return subprocess.Popen(
        [sys.executable, str(HERE / "hooks_program.py"), *PROGRAMS], env=environment, stdout=subprocess.PIPE, text=True
    )


def read_lines(folder, hooks):
    """-> record lines by pid"""
    path, lines = Path(folder, "record-%s.jsonl" % hooks), {}
    for line in path.read_text().splitlines() if path.exists() else []:
        read = json.loads(line)
        lines.setdefault(read["pid"], []).append(read)
    return lines


def steps(lines):
    """(kind, iteration, step, batch, new tokens, context) of prefill and decode."""
    sizes = ("kind", "iteration", "step", "batch_size", "new_tokens", "context_tokens_sum")
    return [tuple(line[size] for size in sizes) for line in lines if line["type"] == "stage" and line["kind"] != "load"]


def generation(iteration, batch, length, decodes=4):
    """Stages of generate: the prompt, then one token per step, each attending to all earlier tokens and itself."""
    prefill = ("prefill", iteration, 0, batch, batch * length, batch * length)
    return [prefill] + [("decode", iteration, step, batch, batch, batch * (length + 1 + step)) for step in range(decodes)]


class HooksTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            running = {hooks: start(hooks, folder) for hooks in ("on", "off")}
            cls.done = {hooks: json.loads(process.communicate(timeout=900)[0]) for hooks, process in running.items()}
            cls.lines = {hooks: read_lines(folder, hooks) for hooks in running}

    def result_of(self, program, hooks="on"):
        """-> (the finished program, its record lines)"""
        done = self.done[hooks][program]
        return done, self.lines[hooks].get(done["pid"], [])

    def check(self, program, expected, code=0):
        """Checks that the program's output is the same with and without hooks, and its stages. -> record lines"""
        (done, lines), (without, none) = self.result_of(program), self.result_of(program, "off")
        self.assertEqual((done["stdout"], done["code"]), (without["stdout"], without["code"]), done["stderr"])
        self.assertEqual(done["code"], code, done["stderr"])
        self.assertNotIn("inferscope:", done["stderr"])
        self.assertEqual(none, [])
        self.assertEqual(steps(lines), expected)
        self.assertTrue(all(line["marked_by"] == "hooks" for line in lines if line["type"] == "stage"))
        return lines

    def test_dense(self):
        calls = generation(0, 2, 7) + generation(1, 2, 7) + generation(2, 1, 3)
        lines = self.check("dense", calls + [("prefill", 3, 0, 1, 4, 4)])
        first = [line["first_of_shape"] for line in lines if line["type"] == "stage" and line["kind"] != "load"]
        self.assertEqual(first, [True, True] + [False] * 8 + [True, True] + [False] * 3 + [True])
        self.assertEqual([line["type"] for line in lines if line["type"] != "stage"], ["clock", "model", "clock", "clock"])
        model = next(line for line in lines if line["type"] == "model")
        self.assertEqual((model["config"]["hidden_size"], model["dtype"], model["quantization"]), (32, "float32", None))
        self.assertEqual((model["facts"]["attention"], model["facts"]["cache"]), ("sdpa", "DynamicCache"))
        stages = [line for line in lines if line["type"] == "stage"]
        self.assertEqual([line["kind"] for line in stages].count("load"), 1)
        self.assertEqual([line["padding_tokens"] for line in stages if line["kind"] == "prefill"], [0, 0, 0, None])
        self.assertTrue(all(a["end_ns"] <= b["t_ns"] for a, b in zip(stages, stages[1:])))

    def test_mixture_of_experts(self):
        lines = self.check("moe", generation(0, 2, 7))
        self.assertEqual(next(line for line in lines if line["type"] == "model")["config"]["num_local_experts"], 4)

    def test_state_space_model(self):
        lines = self.check("mamba", generation(0, 2, 7))
        self.assertEqual(next(line for line in lines if line["type"] == "model")["facts"]["cache"], "DynamicCache")

    def test_continuous_batching(self):
        decodes = [("decode", 0, step, 3, 3, 14 + 3 * (step + 1)) for step in range(3)]
        warmup = ("warmup", 1, 0, None, None, None)
        lines = self.check("continuous", [warmup, ("prefill", 0, 0, 3, 14, 14), *decodes])
        first = [line["first_of_shape"] for line in lines if line["type"] == "stage" and line["kind"] != "load"]
        self.assertEqual(first, [False, True, True, False, False])
        self.assertEqual(next(line for line in lines if line["type"] == "model")["facts"]["cache"], "PagedAttentionCache")

    def test_encoder_and_decoder(self):
        decodes = [("decode", 0, step, 2, 2, 2 * (1 + step)) for step in range(5)]
        lines = self.check("t5", [("prefill", 0, 0, 2, 14, 14)] + decodes)
        self.assertEqual(next(line for line in lines if line["type"] == "model")["config"]["model_type"], "t5")

    def test_encoder_and_decoder_in_one_call(self):
        calls = [("prefill", 0, 0, 2, 20, 6), ("prefill", 1, 0, 2, 22, 8), ("prefill", 2, 0, 2, 24, 10)]
        self.check("encoder_and_decoder", calls)

    def test_static_cache(self):
        self.check("static", generation(0, 2, 7))

    def test_static_cache_in_a_loop(self):
        self.check("static_loop", generation(0, 1, 6, 2) + generation(1, 1, 6, 2))

    def test_assisted(self):
        lines = self.result_of("assisted")[1]
        found_steps = steps(lines)
        self.check("assisted", found_steps)
        # The first drafts are verified with the prompt.
        self.assertEqual((found_steps[0][0], found_steps[0][4] > 7), ("prefill", True))
        verified = found_steps[1:]
        self.assertEqual([(kind, batch, step) for kind, _, step, batch, _, _ in verified], [("decode", 1, n) for n in range(len(verified))])
        self.assertTrue(any(new > 1 for _, _, _, _, new, _ in verified))
        self.assertEqual(next(line for line in lines if line["type"] == "model")["config"]["num_hidden_layers"], 2)

    def test_loop_with_a_chunk(self):
        self.check("loop", [
            ("prefill", 0, 0, 2, 12, 12), ("prefill", 0, 1, 2, 8, 20), ("decode", 0, 0, 2, 2, 22), ("decode", 0, 1, 2, 2, 24),
        ])

    def test_repeated_steps_and_a_crop(self):
        # 7 steps from 7 to 13 tokens, of which three are cropped.
        decodes = [("decode", 0, n, 1, 1, 7 + n if n < 7 else 4 + n) for n in range(9)]
        self.check("cropped", [("prefill", 0, 0, 1, 6, 6)] + decodes)

    def test_without_a_cache(self):
        decodes = [("decode", 0, step, 1, 5 + step, 5 + step) for step in range(4)]
        self.check("no_cache", [("prefill", 0, 0, 1, 4, 4)] + decodes)

    def test_compiled(self):
        lines = self.check("compiled", generation(0, 1, 7))
        decodes = [line for line in lines if line.get("kind") == "decode"]
        self.assertEqual([line["first_of_shape"] for line in decodes], [True, True, True, False])

    def test_compiled_as_a_whole(self):
        self.check("compiled_whole", [("prefill", 0, 0, 2, 12, 12), ("prefill", 1, 0, 2, 12, 12)])

    def test_load(self):
        lines = self.check("load", generation(0, 1, 3))
        self.assertEqual(next(line for line in lines if line["type"] == "model")["dtype"], "bfloat16")
        self.assertEqual([line["kind"] for line in lines if line["type"] == "stage"][0], "load")

    def model(self, program):
        return next(line for line in self.result_of(program)[1] if line["type"] == "model")

    def test_module_of_the_program(self):
        self.check("own_module", generation(0, 2, 6, 3) + generation(1, 2, 6, 3))
        model = self.model("own_module")
        self.assertEqual((model["name"], model["config"], model["engine"]["name"]), ("Decoder", {}, "torch"))
        shapes = {line["path"]: (line["shape"], line["count"]) for line in model["tensors"]}
        self.assertEqual(shapes["embed.weight"], ([128, 32], 1))
        self.assertEqual((shapes["layers.*.qkv"], shapes["layers.*.down"]), (([96, 32], 2), ([32, 64], 2)))
        self.assertEqual(model["weight_bytes"], 4 * (2 * 128 * 32 + 2 * (4 * 32 * 32 + 3 * 64 * 32)))

    def test_repeated_steps_have_no_more_frames(self):
        self.check("frames", generation(0, 1, 6, 8))

    def test_inner_model(self):
        # Steps of the inner model, except the call that revealed it.
        decodes = [("decode", 0, step, 2, 2, 2 * n) for step, n in enumerate(range(6, 12), 6)]
        self.check("inner_model", generation(0, 2, 6, 6) + decodes + generation(1, 2, 4, 6))

    def test_what_replaces_the_call_of_a_module(self):
        self.check("compiled_in_place", generation(0, 1, 6, 6))
        self.check("traced", [("decode", 0, n, 1, 1, None) for n in range(8)])

    def test_module_without_a_cache(self):
        self.check("own_module_without_cache", [("prefill", 0, 0, 1, 4, 4)] + [("decode", 0, n, 1, 5 + n, 5 + n) for n in range(2)])

    def test_a_second_module_is_found(self):
        # All stages of the first model; of the second those after the call that revealed it.
        self.check("two_modules", [("prefill", n, 0, 1, 5, 5) for n in range(5)])

    def test_parts_of_a_model_that_the_program_calls(self):
        # The first call shows which of them is the model.
        self.check("encoder_of_torch", [("prefill", n, 0, 2, 12, 12) for n in range(2)])
        self.assertEqual(self.model("encoder_of_torch")["name"], "TransformerEncoder")

    def test_layers_that_the_program_calls_are_not_steps(self):
        self.check("layers_one_by_one", [])

    def test_a_later_stage_of_a_pipeline(self):
        # The second call shows that the module is called for each batch.
        self.check("pipeline_stage", [("prefill", n, 0, 2, 12, 12) for n in range(2)])
        self.check("pipeline_layers", [])

    def test_compiled_functions(self):
        self.check("compiled_function", generation(0, 1, 4))
        decodes = [("decode", 0, n, 1, 1, 5) for n in range(4)]
        lines = self.check("compiled_closure", [("prefill", 0, 0, 1, 4, 4)] + decodes)
        first = [line["first_of_shape"] for line in lines if line.get("kind") == "decode"]
        self.assertEqual(first, [True, True, True, False])

    def test_encoder(self):
        lines = self.check("bert", [("prefill", 0, 0, 2, 14, 14), ("prefill", 1, 0, 2, 16, 16)])
        self.assertEqual([line["padding_tokens"] for line in lines if line.get("kind") == "prefill"], [3, None])

    def test_features_of_an_encoder(self):
        (done, lines), (without, _) = self.result_of("whisper"), self.result_of("whisper", "off")
        self.assertEqual((done["stdout"], done["code"]), (without["stdout"], 0), done["stderr"])
        # 40 frames are 20 positions of the encoder.
        expected = [("prefill", 0, 0, 2, 40, 40)] + [("decode", 0, n, 2, 2, 2 * (n + 1)) for n in range(4)]
        self.assertEqual(steps(lines), expected)

    def test_adapters(self):
        self.check("lora", generation(0, 2, 7) + [("prefill", 1, 0, 1, 4, 4)])
        self.check("autocast", generation(0, 1, 5))
        self.assertEqual((self.model("autocast")["dtype"], self.model("autocast")["facts"]["stored_dtype"]), ("bfloat16", "float32"))
        self.assertEqual(self.model("lora")["facts"]["adapters"], {"kind": "LoRA", "layers": 4, "ranks": [4], "merged": 0})
        # The layers around the adapted ones have no weights of their own.
        shapes = [line["path"] for line in self.model("lora")["tensors"] if "q_proj" in line["path"]]
        self.assertEqual(sorted(path.split("q_proj.")[1] for path in shapes), ["base_layer", "lora_A.default", "lora_B.default"])

    def test_quantized(self):
        for program, module, kind in (("dynamic_int8", "Linear", None), ("torchao_int8", "Linear", "Int8Tensor")):
            (done, lines), (without, _) = self.result_of(program), self.result_of(program, "off")
            self.assertEqual((done["stdout"], done["code"]), (without["stdout"], 0), done["stderr"])
            self.assertEqual(steps(lines), generation(0, 1, 5))
            query = next(line for line in self.model(program)["tensors"] if line["path"].endswith("q_proj"))
            self.assertEqual((query["module"], query["type"], query["shape"]), (module, kind, [32, 32]))
            # One byte per weight, and scales.
            self.assertTrue(1024 <= query["bytes"] < 1400, query)

    def test_training_has_no_stages(self):
        self.check("training", [])

    def test_exceptions_pass(self):
        lines = self.check("raises", [("prefill", 0, 0, 1, 3, 3)] + generation(1, 1, 3) + [("prefill", 2, 0, 1, 3, 3)], code=1)
        self.assertEqual(len([line for line in lines if line["type"] == "model"]), 1)
        self.assertIn("IndexError", self.result_of("raises")[0]["stderr"])

    def test_hooks_record_nothing_where_the_program_records(self):
        lines = self.result_of("own_record")[1]
        self.assertEqual(steps(lines), [("prefill", 0, 0, 1, 4, 4)])
        self.assertNotIn("marked_by", next(line for line in lines if line.get("kind") == "prefill"))

    def test_a_failing_hook_prints_one_line(self):
        done, lines = self.result_of("fault")
        self.assertEqual((done["code"], done["stdout"]), (0, self.result_of("dense", "off")[0]["stdout"]), done["stderr"])
        reported = [line for line in done["stderr"].splitlines() if line.startswith("inferscope:")]
        self.assertEqual((len(reported), steps(lines)), (1, []), reported)


if __name__ == "__main__":
    unittest.main()
