import { closeSync, openSync } from 'node:fs';
import process from 'node:process';
import { expect, test } from 'vitest';
import { identifyGpuProcess, pidNamespace } from './gpu-processes.js';

test('recognizes the namespace that the machine booted with', () => {
  expect(pidNamespace('pid:[4026531836]')).toBe('initial');
  expect(pidNamespace('pid:[4026532281]')).toBe('nested');
  expect(pidNamespace(null)).toBe('unknown');
});

test.runIf(process.platform === 'linux')('a pid identifies a local process only if that is certain', () => {
  const ownPid = process.pid;
  expect(identifyGpuProcess(ownPid, 'initial')).toMatchObject({
    pid: ownPid,
    here: true,
    name: expect.any(String),
  });
  // In a container the driver's pid may belong to another process here: ours uses no GPU.
  expect(identifyGpuProcess(ownPid, 'nested')).toEqual({ pid: ownPid, name: null, here: false });
  const unusedPid = 2 ** 22 + 1; // above Linux's largest pid
  expect(identifyGpuProcess(unusedPid, 'initial')).toEqual({
    pid: unusedPid,
    name: null,
    here: false,
  });
  // An open device file that is not a GPU's does not count.
  const descriptor = openSync('/dev/null', 'r');
  expect(identifyGpuProcess(ownPid, 'nested').here).toBe(false);
  closeSync(descriptor);
});
