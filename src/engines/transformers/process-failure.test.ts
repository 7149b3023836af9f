import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fromErrorLine, processFailure, recordedError, type ProcessEnd } from './process-failure.js';

const end: ProcessEnd = {
  command: 'python3',
  exitCode: 1,
  signal: null,
  startError: null,
  stopping: false,
  words: '',
};

// Record lines of inferscope_engine.py, transformers 5.17, --model no-such/model --weights trained, without a network.
const lines = `{"v": 1, "type": "clock", "execution_id": "clean", "rank": 0, "pid": 7, "t_ns": 1, "realtime_ns": "2"}
{"v": 1, "type": "error", "execution_id": "clean", "rank": 0, "pid": 6, "t_ns": 3, "code": "E_OUT_OF_MEMORY", "text": "of another process"}
{"v": 1, "type": "error", "execution_id": "clean", "rank": 0, "pid": 7, "t_ns": 4, "code": "E_MODEL_NOT_FOUND", "text": "no-such/model could not be loaded\\n  We couldn't connect to the hub\\n  Check the name and the network \\u2013 or take --weights random, which downloads nothing."}
{"v": 1, "type": "clo`;

test('the error line of its process explains a failed launch', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'inferscope-record-'));
  const path = join(folder, 'record.jsonl');
  writeFileSync(path, lines);
  const recorded = await recordedError(path, 7);
  rmSync(folder, { recursive: true });
  expect(processFailure(end, recorded)).toMatchObject({
    code: 'E_MODEL_NOT_FOUND',
    parts: {
      what: 'no-such/model could not be loaded',
      why: "We couldn't connect to the hub",
      fix: 'Check the name and the network – or take --weights random, which downloads nothing.',
    },
  });
  expect(await recordedError(path, 7)).toBeNull();
});

test('an unknown error code of a later version is still a workload failure', () => {
  expect(fromErrorLine({ code: 'E_NEWER', text: 'it broke' })).toMatchObject({
    code: 'E_WORKLOAD_FAILED',
    parts: { what: 'it broke' },
  });
});

test('describes how a process ended', () => {
  expect(processFailure({ ...end, exitCode: 0 }, null)).toBeNull();
  expect(processFailure({ ...end, exitCode: null, signal: 'SIGKILL' }, null)?.code).toBe('E_OUT_OF_MEMORY');
  expect(processFailure({ ...end, exitCode: null, signal: 'SIGKILL', stopping: true }, null)?.code).toBe(
    'E_INTERRUPTED',
  );
  expect(processFailure({ ...end, exitCode: null, startError: 'ENOENT' }, null)?.code).toBe(
    'E_ENGINE_MISSING',
  );
  const died = processFailure({ ...end, exitCode: null, signal: 'SIGSEGV', words: 'a\nb\nc\nd\n' }, null);
  expect(died).toMatchObject({ code: 'E_WORKLOAD_FAILED', parts: { why: 'b\nc\nd' } });
});
