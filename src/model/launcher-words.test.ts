import { expect, test } from 'vitest';
import { launcherWords } from './launcher-words.js';

const launcherArguments = ['run', '--name', 'job', '--', 'python', 'train.py'];
const torchrun = { RANK: '1', WORLD_SIZE: '8', MASTER_ADDR: 'node1', MASTER_PORT: '29500' };
const slurm = { SLURM_PROCID: '1', SLURM_STEP_NUM_TASKS: '4', SLURM_STEP_ID: '0', SLURM_JOB_ID: '7' };

/** Parent processes, nearest first. */
const ancestors = (...lines: string[]) => {
  const words = lines.map((line) => line.split(' '));
  return () => {
    const next = words.shift();
    return next === undefined ? null : { words: next, parent: 1 };
  };
};

test("finds the launcher's words in the command line of a parent process", () => {
  const line = `/usr/bin/python3.12 /usr/local/bin/torchrun --nproc-per-node 8 --no-python inferscope ${launcherArguments.join(' ')}`;
  expect(launcherWords(launcherArguments, torchrun, ancestors(line, '-bash'))).toEqual([
    'torchrun',
    '--nproc-per-node',
    '8',
    '--no-python',
  ]);
  const module = `python -m torch.distributed.run --no-python node dist/cli.js ${launcherArguments.join(' ')}`;
  expect(launcherWords(launcherArguments, torchrun, ancestors(module))).toEqual([
    'python',
    '-m',
    'torch.distributed.run',
    '--no-python',
  ]);
});

test('for nested launchers returns the outer one', () => {
  const inner = `torchrun --nproc-per-node 8 inferscope ${launcherArguments.join(' ')}`;
  expect(launcherWords(launcherArguments, torchrun, ancestors(inner, `mpirun -n 2 ${inner}`))).toEqual(
    'mpirun -n 2 torchrun --nproc-per-node 8'.split(' '),
  );
});

test('srun is on another host; without a launcher the result is empty', () => {
  expect(launcherWords(launcherArguments, slurm, ancestors('slurmstepd: [7.0]'))).toEqual([
    'srun',
    '--ntasks=4',
  ]);
  expect(launcherWords(launcherArguments, torchrun, ancestors('/bin/kubelet'))).toEqual([]);
  expect(
    launcherWords(launcherArguments, {}, ancestors(`timeout 9 inferscope ${launcherArguments.join(' ')}`)),
  ).toEqual([]);
});
