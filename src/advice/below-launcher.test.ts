import { expect, test } from 'vitest';
import { belowLauncher, withProgram } from './below-launcher.js';

test('a suggested run starts with the launcher of the recorded one; other commands, and runs without a launcher, are unchanged', () => {
  const command = [
    'torchrun',
    '--nproc-per-node',
    '2',
    '--no-python',
    'inferscope',
    'run',
    '--',
    'python',
    'a.py',
  ];
  const check = 'inferscope run --evaluator nsys -- <the changed command>';
  expect(belowLauncher(check, { command })).toBe(`torchrun --nproc-per-node 2 --no-python ${check}`);
  expect(belowLauncher('inferscope doctor', { command })).toBe('inferscope doctor');
  expect(belowLauncher(check, { command: ['inferscope', 'run'] })).toBe(check);
});

test.each([
  [['inferscope', 'run', '--', 'python', 'a b.py', '--', 'x'], "python 'a b.py' -- x"],
  [['srun', '--ntasks=2', '--', 'inferscope', 'run', '--name', 'n', '--', 'python', 'p.py'], 'python p.py'],
  [['inferscope', 'import', 'x.nsys-rep'], '<command>'],
])("%j: takes the program after inferscope's --", (command, program) => {
  expect(withProgram('inferscope run --evaluator torch -- <command>', { command })).toBe(
    `inferscope run --evaluator torch -- ${program}`,
  );
});
