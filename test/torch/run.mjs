// npm run test:torch: the Python side with a real PyTorch. Creates a virtual environment with the pinned versions of requirements.txt once
// (about 5 GB, two minutes), then runs the tests next to this file, of the transformers engine and of the kernel runner. With arguments
// (names of Python tests) it runs only these.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { pythonOfEnvironment } from '../python-environment.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '..', '..');
const requirements = join(here, 'requirements.txt');
const python = pythonOfEnvironment('torch', {
  content: [readFileSync(requirements), readFileSync(join(root, 'python', 'workloads', 'requirements.txt'))],
  installs: [['-r', requirements]],
  message: 'Installing torch and transformers for the tests, once…',
});
const tests = spawnSync(python, ['-B', join(here, 'run_tests.py'), ...process.argv.slice(2)], {
  stdio: 'inherit',
  timeout: 30 * 60_000,
});
if (tests.error !== undefined)
  process.stderr.write(`The tests in Python did not end: ${tests.error.message}\n`);
// Tests in TypeScript use the same Python for the engine.
const engine =
  process.argv.length > 2
    ? { status: 0 }
    : spawnSync(
        'npx',
        ['vitest', 'run', '--project', 'unit', 'src/engines/transformers', 'src/capture/kernels'],
        {
          cwd: root,
          stdio: 'inherit',
          env: { ...process.env, INFERSCOPE_TEST_TORCH_PYTHON: python },
          timeout: 10 * 60_000,
        },
      );
process.exitCode = tests.status || engine.status || (tests.status === 0 && engine.status === 0 ? 0 : 1);
