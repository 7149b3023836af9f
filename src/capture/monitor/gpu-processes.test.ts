import { closeSync, openSync } from 'node:fs';
import process from 'node:process';
import { expect, test } from 'vitest';
import { identifyGpuProcess, pidNamespace } from './gpu-processes.js';

test('the namespace the machine booted with has a number of its own', () => {
  expect(pidNamespace('pid:[4026531836]')).toBe('initial');
  expect(pidNamespace('pid:[4026532281]')).toBe('nested');
  expect(pidNamespace(null)).toBe('unknown');
});

test.runIf(process.platform === 'linux')('a number means this process only where it is sure', () => {
  const ownPid = process.pid;
  expect(identifyGpuProcess(ownPid, 'initial')).toMatchObject({
    pid: ownPid,
    here: true,
    name: expect.any(String),
  });
  // In a container the driver's number may be another process's here: ours holds no GPU.
  expect(identifyGpuProcess(ownPid, 'nested')).toEqual({ pid: ownPid, name: null, here: false });
  expect(identifyGpuProcess(2 ** 22 + 1, 'initial')).toEqual({ pid: 2 ** 22 + 1, name: null, here: false });
  const file = openSync('/dev/null', 'r');
  expect(identifyGpuProcess(ownPid, 'nested').here).toBe(false);
  closeSync(file);
});
