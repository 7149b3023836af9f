"""Runs the unittest files of this folder and closes with one line of counts."""

import sys
import unittest
from pathlib import Path

folder = str(Path(__file__).resolve().parent)
sys.path.insert(0, folder)
if len(sys.argv) > 1:
    suite = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:])
else:
    suite = unittest.defaultTestLoader.discover(folder)
result = unittest.TextTestRunner(verbosity=2, stream=sys.stderr).run(suite)
failed = len(result.failures) + len(result.errors)
passed = result.testsRun - failed - len(result.skipped)
print("%d passed, %d failed, %d skipped" % (passed, failed, len(result.skipped)))
sys.exit(0 if failed == 0 and passed > 0 else 1)
