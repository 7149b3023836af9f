"""`inferscope run` of the built binary around programs on real torch, transformers and peft, on the CPU."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
CLI = HERE.parents[1] / "dist" / "cli.js"
STAGES = (
    "SELECT execution_id, kind, coalesce(warmup, false) AS warmup, batch_size, context_tokens_sum AS context, count(*) AS n FROM stages "
    "WHERE kind IN ('prefill', 'decode', 'load') GROUP BY ALL ORDER BY ALL"
)


@unittest.skipUnless(CLI.exists(), "dist/cli.js is not built: npm run build")
class RunTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.TemporaryDirectory()
        cls.environment = dict(os.environ, INFERSCOPE_HOME=cls.home.name, INFERSCOPE_TORCH_OPTIONS='{"device":"cpu"}')
        cls.environment.pop("PYTHONPATH", None)

    @classmethod
    def tearDownClass(cls):
        cls.home.cleanup()

    def inferscope(self, *words):
        return subprocess.run(["node", str(CLI), *words], env=self.environment, capture_output=True, text=True, timeout=600)

    def run_program(self, name, *options):
        command = [sys.executable, str(HERE / "run_program.py"), name]
        return self.inferscope("run", "--quiet", *options, "--", *command)

    def rows(self, name, query=STAGES):
        done = self.inferscope("sql", "--session", name, "--json", query)
        self.assertEqual(done.returncode, 0, done.stderr)
        read = json.loads(done.stdout)["data"]
        columns = [column["name"] if isinstance(column, dict) else column for column in read["columns"]]
        return [tuple(dict(zip(columns, row)).values()) if isinstance(row, list) else tuple(row.values()) for row in read["rows"]]

    def test_stages_of_a_model_with_adapters(self):
        done = self.run_program("adapters", "--evaluator", "none,torch", "--name", "adapters")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("decode step", done.stdout)
        steps_by_kind = {}
        for execution, kind, warmup, batch, context, n in self.rows("adapters"):
            if kind != "load":
                self.assertEqual(batch, 2)
                steps_by_kind[execution, kind, warmup] = steps_by_kind.get((execution, kind, warmup), 0) + n
        # In each execution three generations of 5 tokens: a prefill and 4 decode steps. Warm-up are the first decode step of the
        # process, and the first iteration of each context length that occurs again.
        for execution in ("clean", "torch"):
            self.assertEqual([steps_by_kind[execution, "prefill", warm] for warm in (False, True)], [2, 1], steps_by_kind)
            self.assertEqual([steps_by_kind[execution, "decode", warm] for warm in (False, True)], [7, 5], steps_by_kind)
        text = self.inferscope("session", "show", "adapters").stdout
        self.assertIn("LoRA in 2 layers, rank 4, not merged", text)
        self.assertRegex(text, r"KV cache\s+DynamicCache")
        without = self.run_program("adapters", "--evaluator", "none", "--no-hooks")
        self.assertEqual(without.returncode, 0, without.stderr)
        self.assertEqual(self.rows("@last"), [])
        tokens = [line for line in without.stdout.splitlines() if line.startswith("[[")]
        self.assertEqual(len(tokens), 3)
        self.assertEqual([line for line in done.stdout.splitlines() if line.startswith("[[")], tokens * 2)

    def test_marks_of_the_program_replace_those_of_hooks(self):
        done = self.run_program("marked", "--evaluator", "torch", "--name", "marked")
        self.assertEqual(done.returncode, 0, done.stderr)
        steps = [row for row in self.rows("marked") if row[1] != "load"]
        # One stage per mark of the program, with the sizes that the hooks observed. Its marks have no first calls.
        self.assertEqual(sum(row[5] for row in steps if row[1] == "prefill"), 2)
        self.assertEqual(sorted(row[3:] for row in steps if row[1] == "decode"), [(2, 16, 2), (2, 18, 2), (2, 20, 2)])

    def test_exceptions_of_the_program_are_unchanged(self):
        done = self.run_program("fails", "--evaluator", "none", "--exit-code", "child", "--name", "fails")
        self.assertEqual(done.returncode, 1)
        self.assertIn("IndexError", done.stdout + done.stderr)
        self.assertEqual(sum(row[5] for row in self.rows("fails") if row[1] == "prefill"), 2)


if __name__ == "__main__":
    unittest.main()
