import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { mayForkEngine } from './forked-engine.js';
import { nsysArguments } from './nsys-arguments.js';

test('detects vLLM in the command, or in the imports of its script', () => {
  const folder = mkdtempSync(join(tmpdir(), 'inferscope-fork-'));
  const script = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  expect(mayForkEngine(['vllm', 'serve', 'x'])).toBe(true);
  expect(mayForkEngine(['python', '-m', 'vllm.entrypoints.openai.api_server'])).toBe(true);
  expect(mayForkEngine(['python', script('run.py', 'import os\nfrom vllm import LLM\n')])).toBe(true);
  expect(mayForkEngine(['python', script('other.py', '# not vllm\nimport torch\n'), 'no-such.py'])).toBe(
    false,
  );
  rmSync(folder, { recursive: true });
});

test("nsys traces forked processes only on request, and the user's option takes precedence", () => {
  const options = { trace: [], captureRange: null, args: [] };
  const flags = (args: string[], forks: boolean) =>
    nsysArguments('/s/nsys', { ...options, args }, forks).filter((arg) => arg.startsWith('--trace-fork'));
  expect(flags([], true)).toEqual(['--trace-fork-before-exec=true']);
  expect(flags([], false)).toEqual([]);
  expect(flags(['--trace-fork-before-exec=false'], true)).toEqual(['--trace-fork-before-exec=false']);
});
