import { expect, test } from 'vitest';
import { readFileSync } from 'node:fs';
import { parseVllmLog } from './parse.js';

const readFixture = (name: string) => readFileSync(`test/fixtures/vllm-logs/${name}.log`, 'utf8');
const parseFixture = (name: string) => parseVllmLog(readFixture(name));

test.each([
  ['', 'The log is empty.'],
  ['hello\nworld', 'It contains no vLLM log lines.'],
  ['INFO 09-03 [api_server.py:1] vLLM API server version 0.22.0', /mentions vLLM/],
  [readFixture('v0.4.2-opt-125m').split('\n')[0]!, /started but printed no memory/],
])('a log without memory figures has the reason: log %#', (log, reason) => {
  const facts = parseVllmLog(log);
  expect(facts.ranks).toEqual([]);
  expect(facts.reason).toMatch(reason);
});

test('does not take a failed start for the one that ran', () => {
  const log = parseVllmLog(
    `${readFixture('v0.9.2-qwen3-8b-a100')}\n${readFixture('v0.9.2-qwen3-8b-a100').split('Loading')[0]!}`,
  );
  expect(log.starts).toBe(2);
  expect(log.kv_cache_tokens!.value).toBe(136_080);
});

test('a failure on a CPU, as recorded', () => {
  expect(parseFixture('v0.32.0-cpu-no-room').failure!.value).toMatch(
    /^Available memory on node 0 \(21\.27\/23\.54 GiB\)/,
  );
});
