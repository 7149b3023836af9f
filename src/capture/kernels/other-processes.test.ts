import { expect, it } from 'vitest';
import type { Row } from '../../model/tables.js';
import { sharedBefore, sharedDuring } from './other-processes.js';

const idle = { index: 1, processes: [], computeProcesses: 0, memoryUsedBytes: 600e6, migEnabled: false };

it('reports nothing for an idle GPU', () => {
  expect(sharedBefore(idle)).toBeNull();
  expect(
    sharedBefore({ ...idle, memoryUsedBytes: null, processes: null, computeProcesses: null }),
  ).toBeNull();
});

it('names the processes and their memory', () => {
  const processes = [{ pid: 41, usedBytes: 3 * 2 ** 30 }];
  const issue = sharedBefore({ ...idle, processes, memoryUsedBytes: 4 * 2 ** 30 }, () => 'vllm');
  expect(issue?.text).toContain(
    'Other processes used GPU 1 before the first case: vllm (pid 41) with 3.00 GiB, 4.00 GiB of its memory in use.',
  );
  expect(sharedBefore({ ...idle, processes: null, computeProcesses: 2 })?.text).toContain(': 2 of them');
});

it('attributes memory without a process to a process outside the container, but not on a partitioned GPU', () => {
  const full = { ...idle, memoryUsedBytes: 20 * 2 ** 30 };
  expect(sharedBefore(full)?.text).toContain(
    '20.0 GiB in use before the first case, by processes that are not visible',
  );
  expect(sharedBefore({ ...full, migEnabled: true })).toBeNull();
});

it('reports two processes at once on one GPU once, with the maximum number seen', () => {
  const row = (scope: string, value: number) =>
    ({ scope, metric: 'compute_processes', value }) as Row<'telemetry'>;
  const issues = sharedDuring([row('gpu0', 1), row('gpu1', 2), row('gpu1', 3), row('gpu0', 1)]);
  expect(issues.map(({ code }) => code)).toEqual(['gpu_shared']);
  expect(issues[0]!.text).toContain('Up to 3 processes used GPU 1');
});
