import { expect, test } from 'vitest';
import { firstSubject, hasSubject, leadOf, subjectsOf } from './subjects.js';

const content = (kind: string, artifacts: string[], ...tables: string[]) =>
  contentOf(kind, ['profiled'], artifacts, ...tables);

const contentOf = (kind: string, purposes: string[], artifacts: string[], ...tables: string[]) => {
  const manifest = {
    kind,
    executions: purposes.map((purpose) => ({ purpose })),
    tables: Object.fromEntries(tables.map((name) => [name, [{ rows: 1 }]])),
    artifacts: artifacts.map((artifact) => ({ kind: artifact })),
  };
  return { kind, subjects: subjectsOf(manifest) };
};

// Files that each command writes, with samples.
test.each([
  [
    'profile',
    content('profile', ['record', 'roofline'], 'ops', 'stages', 'telemetry'),
    'profile timeline telemetry',
    'profile',
  ],
  [
    'run, nsys',
    content('run', ['nsys-rep'], 'kernels', 'ops', 'telemetry'),
    'timeline telemetry',
    'timeline',
  ],
  ['run, ncu', content('run', ['ncu-rep'], 'counters'), 'counters', 'counters'],
  ['run, BLAS log', content('run', ['cublaslt-log'], 'gemms'), 'gemms', 'gemms'],
  [
    'run without profiler',
    content('run', ['stdout', 'roofline-gpu'], 'telemetry', 'memory'),
    'roofline telemetry',
    null,
  ],
  [
    'run without profiler, steps recorded',
    content('run', ['stdout'], 'stages', 'telemetry'),
    'steps telemetry',
    'steps',
  ],
  [
    'run, ncu next to recorded steps',
    contentOf('run', ['clean', 'counters'], ['ncu-rep'], 'stages', 'counters'),
    'steps counters',
    'steps',
  ],
  [
    'run, ncu with marked stages',
    contentOf('run', ['counters'], ['ncu-rep'], 'stages', 'counters'),
    'counters',
    'counters',
  ],
  ['run, nsys next to recorded steps', content('run', [], 'kernels', 'stages'), 'timeline', 'timeline'],
  [
    'bench latency',
    content('bench', ['bench-plan', 'roofline-gpu'], 'iterations', 'telemetry'),
    'bench roofline telemetry',
    'bench',
  ],
  ['bench serve', content('bench', ['load-plan'], 'requests', 'telemetry'), 'load telemetry', 'load'],
  [
    'memory',
    content('memory', ['bench-plan', 'memory-plan'], 'memory', 'telemetry'),
    'memory bench telemetry',
    'memory',
  ],
  ['a memory profile read', content('import', ['memory-profile']), 'memory', 'memory'],
  [
    'kernels with a trace',
    content('kernels', ['kernel-plan'], 'microbenchmarks', 'kernels'),
    'kernels timeline',
    'kernels',
  ],
  ['NCCL Inspector read', content('import', ['nccl-inspector'], 'collectives'), 'collectives', 'collectives'],
  ['monitor', content('monitor', ['monitor'], 'telemetry', 'memory'), 'telemetry', 'telemetry'],
  ['nvidia-smi read', content('import', ['nvidia-smi-query'], 'telemetry'), 'telemetry', 'telemetry'],
  ['results read', content('import', ['benchmark-results'], 'metrics'), 'results', 'results'],
  ['roofline', content('roofline', ['roofline-gpu'], 'telemetry'), 'roofline telemetry', 'roofline'],
  ['validate', content('validate', ['validation']), 'validation', 'validation'],
  ['nothing', content('import', ['unread']), '', null],
] as const)('%s', (_, session, expected, lead) => {
  expect(session.subjects.join(' ')).toBe(expected);
  expect(leadOf(session)).toBe(lead);
});

test('a table without rows is not a subject, and the first of several subjects is the main one', () => {
  const empty = { kind: 'run', executions: [], tables: { kernels: [{ rows: 0 }] }, artifacts: [] };
  expect(subjectsOf(empty)).toEqual([]);
  const session = content('bench', ['bench-plan'], 'kernels', 'counters', 'telemetry');
  expect(session.subjects).toEqual(['bench', 'timeline', 'counters', 'telemetry']);
  expect(firstSubject(session, 'timeline', 'bench')).toBe('bench');
  expect(hasSubject(session, 'load', 'memory')).toBe(false);
});
