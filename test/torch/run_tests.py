"""Runs the unittest files of this folder and prints one line of counts.

If CI is set, failed tests run once more, because they start processes, send signals and measure times on a machine
with two cores. A real fault fails twice.
"""

import os
import sys
import unittest
from pathlib import Path

folder = str(Path(__file__).resolve().parent)
sys.path.insert(0, folder)
if len(sys.argv) > 1:
    suite = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:])
else:
    suite = unittest.defaultTestLoader.discover(folder)
runner = unittest.TextTestRunner(verbosity=2, stream=sys.stderr)
result = runner.run(suite)
broken = [test for test, _ in result.failures + result.errors]
if broken and os.environ.get("CI") and all(isinstance(test, unittest.TestCase) for test in broken):
    sys.stderr.write("Once more, what failed:\n")
    names = sorted({test.id() for test in broken})
    again = runner.run(unittest.defaultTestLoader.loadTestsFromNames(names))
    broken = again.failures + again.errors
failed = len(broken)
passed = result.testsRun - failed - len(result.skipped)
print("%d passed, %d failed, %d skipped" % (passed, failed, len(result.skipped)))
sys.exit(0 if failed == 0 and passed > 0 else 1)
