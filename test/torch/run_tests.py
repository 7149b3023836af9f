"""Runs the unittest files of this folder and prints one line of counts.

If CI is set, failed tests run once more, because they start processes, send signals and measure times on a machine
with two cores. A real failure fails twice.
"""

import os
import sys
import unittest
from pathlib import Path


def main() -> int:
    folder = str(Path(__file__).resolve().parent)
    sys.path.insert(0, folder)
    if len(sys.argv) > 1:
        suite = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:])
    else:
        suite = unittest.defaultTestLoader.discover(folder)
    runner = unittest.TextTestRunner(verbosity=2, stream=sys.stderr)
    result = runner.run(suite)
    failures = [test for test, _ in result.failures + result.errors]
    if failures and os.environ.get("CI") and all(isinstance(test, unittest.TestCase) for test in failures):
        sys.stderr.write("Running the failed tests once more:\n")
        names = sorted({test.id() for test in failures})
        second_result = runner.run(unittest.defaultTestLoader.loadTestsFromNames(names))
        failures = second_result.failures + second_result.errors
    failed = len(failures)
    passed = result.testsRun - failed - len(result.skipped)
    print("%d passed, %d failed, %d skipped" % (passed, failed, len(result.skipped)))
    return 0 if failed == 0 and passed > 0 else 1


# Processes that a test spawns import this file again.
if __name__ == "__main__":
    sys.exit(main())
