"""Hooks around modules without tokens: the calls of a denoising loop are steps, and programs are unaffected."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROBE = HERE.parents[1] / "python" / "inferscope_probe"


class LoopsTest(unittest.TestCase):
    def stages_of(self, program):
        """-> (kind, batch, whether it is the first of its sizes) of each stage; the output equals that without hooks"""
        outputs, stages = [], []
        for hooks in ("on", "off"):
            with tempfile.TemporaryDirectory() as folder:
                record = Path(folder, "record.jsonl")
                environment = dict(
                    os.environ, PYTHONPATH=str(PROBE), INFERSCOPE_EVALUATOR="none", INFERSCOPE_HOOKS=hooks, INFERSCOPE_RECORD=str(record)
                )
                done = subprocess.run(
                    [sys.executable, str(HERE / "loops_program.py"), program], env=environment, capture_output=True, text=True, timeout=300
                )
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                outputs.append(done.stdout)
                lines = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
                stages.append([line for line in lines if line["type"] == "stage"])
        self.assertEqual(outputs[0], outputs[1])
        self.assertEqual(stages[1], [])
        return [(stage["kind"], stage["batch_size"], stage["first_of_shape"]) for stage in stages[0]]

    def test_calls_of_a_denoising_loop_are_steps(self):
        # The first two calls show that the module is called again and again; the last image has other sizes.
        step, first = ("other", None, False), ("other", None, True)
        self.assertEqual(self.stages_of("denoising"), [step] * 8 + [first] + [step] * 4)

    def test_a_loop_after_a_model_with_tokens(self):
        # A convolution of the first call starts the search.
        self.assertEqual(self.stages_of("after_text"), [("prefill", 1, True)] + [("other", None, False)] * 5)

    def test_what_is_not_the_same_call_again_has_no_steps(self):
        for program in ("blocks", "two_in_turn", "training"):
            self.assertEqual(self.stages_of(program), [], program)


if __name__ == "__main__":
    unittest.main()
