import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { expect, test } from 'vitest';
import { noTelemetry } from '../../model/no-telemetry.js';
import { testFolder } from '../../session/test-folder.js';
import { loadOnnxRuntime } from '../onnx/runtime.js';
import { findPython } from './interpreter.js';
import { startPython } from './python-process.js';

const folder = testFolder();
const environmentFile = join(folder, 'environment');

/** Prints the answer that findPython expects, and writes its environment to a file. */
function python(): string {
  const path = join(folder, 'python');
  const answer = JSON.stringify({ version: '3.12.0', packages: {}, torch: null, model: null });
  writeFileSync(path, `#!/bin/sh\nenv > '${environmentFile}'\necho '${answer}'\n`, { mode: 0o755 });
  return path;
}

const expected = Object.entries(noTelemetry).map(([name, value]) => `${name}=${value}`);

test('the query to a Python and an engine in it run with usage reports off', async () => {
  await findPython([python()], [], { probe: folder, hubId: null });
  expect(readFileSync(environmentFile, 'utf8').split('\n')).toEqual(expect.arrayContaining(expected));
  writeFileSync(environmentFile, '');
  const { signal } = new AbortController();
  const control = { recordPath: join(folder, 'record'), scratch: folder, signal };
  const process_ = { command: python(), args: [], order: { execution_id: 'x' }, graceMs: 1000 };
  await startPython(process_, control, () => {}).ended;
  expect(readFileSync(environmentFile, 'utf8').split('\n')).toEqual(expect.arrayContaining(expected));
});

test('ONNX Runtime is loaded with telemetry off in the environment of this process', async () => {
  delete process.env['ORT_DISABLE_TELEMETRY'];
  await loadOnnxRuntime();
  expect(process.env['ORT_DISABLE_TELEMETRY']).toBe('1');
});
