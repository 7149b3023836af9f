import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KernelCase, KernelOrder, KernelProgress, KernelRunner } from '../../model/kernels.js';
import { microbenchmarkLineSchema, type MicrobenchmarkLine } from '../../model/record.js';
import { measureCases } from './measure-cases.js';
import { torchRunner } from './runner.js';

let folder: string;
let count = 0;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'inferscope-kernels-test-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function softmax(name: string): KernelCase {
  const params = { rows: 4, columns: 64 };
  return { case: name, kernel: 'softmax', backend: null, dtype: 'float32', params, flops: 0, bytes: 2048 };
}

function orderOf(cases: KernelCase[]): KernelOrder {
  const limits = { runs: 3, max_runs: 5, max_seconds: 0.2, target_half_width: 0.05 };
  return {
    v: 1,
    execution_id: 'kernels',
    device: 'cpu',
    cases,
    ...limits,
    graph: 'auto',
    check: true,
    seed: 1,
  };
}

async function measure(
  runner: KernelRunner,
  cases: KernelCase[],
  more: { patienceMs?: number; onProgress?: (p: KernelProgress) => void; signal?: AbortSignal } = {},
) {
  const recordPath = join(folder, `${count}.jsonl`);
  const progress: KernelProgress[] = [];
  const capture = await measureCases(orderOf(cases), {
    runner,
    recordPath,
    scratch: join(folder, `scratch-${count++}`),
    host: 'here',
    signal: more.signal ?? new AbortController().signal,
    onProgress(kernelProgress) {
      progress.push(kernelProgress);
      more.onProgress?.(kernelProgress);
    },
    onRows: () => {},
    ...(more.patienceMs === undefined ? {} : { patienceMs: more.patienceMs }),
  });
  const lines = readFileSync(recordPath, 'utf8')
    .trim()
    .split('\n')
    .map((text) => JSON.parse(text) as { type: string })
    .filter(({ type }) => type === 'microbenchmark')
    .map((line) => microbenchmarkLineSchema.parse(line));
  return { capture, lines, progress };
}

const outcomes = (lines: MicrobenchmarkLine[]) => lines.map((line) => [line.case, line.outcome]);

/** A runner process that measures nothing: it writes records, and behaves as the name of a case says. */
const script = `
const { appendFileSync, writeSync } = require('node:fs');
const order = JSON.parse(process.argv[1]);
for (const [done, one] of order.cases.entries()) {
  writeSync(1, JSON.stringify({ type: 'case', case: one.case, done, total: order.cases.length }) + '\\n');
  if (one.case.startsWith('dies')) process.kill(process.pid, 'SIGSEGV');
  while (one.case.startsWith('hangs'));
  const line = { v: 1, type: 'microbenchmark', execution_id: 'kernels', rank: 0, pid: 1, t_ns: 1, end_ns: 2, ...one };
  Object.assign(line, { outcome: 'measured', samples_ns: [1], method: 'host', per_sample: 1 });
  appendFileSync(process.argv[2], JSON.stringify(line) + '\\n');
}
`;
const fragile: KernelRunner = {
  name: 'onnxruntime',
  version: null,
  device: 'cpu',
  launch(order, control) {
    const child = execa(process.execPath, ['-e', script, JSON.stringify(order), control.recordPath], {
      reject: false,
    });
    control.signal.addEventListener('abort', () => child.kill('SIGKILL'));
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      for (const line of text.trim().split('\n')) control.onProgress(JSON.parse(line) as KernelProgress);
    });
    const ended = child.then(({ signal }) => ({ failure: signal ? new Error(signal) : null, log: null }));
    return { pid: child.pid ?? null, ended };
  },
};

describe('a process that runs cases', () => {
  it('dies: its case fails, earlier ones are kept, later ones are measured in a new process', async () => {
    const names = ['a', 'dies', 'b', 'dies too', 'c'];
    const { lines, capture } = await measure(fragile, names.map(softmax));
    expect(outcomes(lines)).toEqual([
      ['a', 'measured'],
      ['dies', 'failed'],
      ['b', 'measured'],
      ['dies too', 'failed'],
      ['c', 'measured'],
    ]);
    expect(lines[1]!.text).toBe('Its process died: SIGSEGV');
    expect(capture.launches.map((launch) => launch.cases.length)).toEqual([5, 3, 1]);
    expect(capture.issues.filter(({ code }) => code === 'kernel_process_died')).toHaveLength(2);
  });

  it('dies repeatedly: the rest is given up, and every case has its line', async () => {
    const { lines } = await measure(fragile, ['dies 1', 'dies 2', 'dies 3', 'dies 4', 'a', 'b'].map(softmax));
    expect(lines.map((line) => line.outcome)).toEqual(Array(6).fill('failed'));
    expect(lines[5]!.text).toBe('Not tried: 4 processes died before it.');
  });

  it('hangs: it is ended, its case fails, the rest is measured', async () => {
    const { lines } = await measure(fragile, ['a', 'hangs', 'b'].map(softmax), { patienceMs: 1500 });
    expect(outcomes(lines)).toEqual([
      ['a', 'measured'],
      ['hangs', 'failed'],
      ['b', 'measured'],
    ]);
    expect(lines[1]!.text).toBe('It hung, and its process was killed.');
  });

  it('is stopped: cases that it could not record are recorded as stopped', async () => {
    const stop = new AbortController();
    const { lines, capture } = await measure(fragile, ['a', 'hangs', 'b'].map(softmax), {
      signal: stop.signal,
      onProgress: ({ case: name }) => name === 'hangs' && stop.abort(),
    });
    expect(outcomes(lines)).toEqual([
      ['a', 'measured'],
      ['hangs', 'stopped'],
      ['b', 'stopped'],
    ]);
    expect(capture.stopped).toBe(true);
  });

  it('is one of several rounds that share a record', async () => {
    const { capture } = await measure(fragile, ['a', 'b'].map(softmax));
    const progress: KernelProgress[] = [];
    await measureCases(orderOf(['b', 'c'].map(softmax)), {
      runner: fragile,
      recordPath: capture.recordPath,
      scratch: join(folder, 'again'),
      host: 'here',
      signal: new AbortController().signal,
      onProgress: (kernelProgress) => progress.push(kernelProgress),
      onRows: () => {},
    });
    const text = readFileSync(capture.recordPath, 'utf8');
    expect([...text.matchAll(/"case":"(.)"/g)].map(([, name]) => name)).toEqual(['a', 'b', 'b', 'c']);
    expect(progress.map(({ case: name, done, total }) => [name, done, total])).toEqual([
      ['b', 0, 2],
      ['c', 1, 2],
    ]);
  });

  it('cannot be started: every case fails with the reason', async () => {
    const absent: KernelRunner = {
      ...fragile,
      launch: () => {
        throw new Error('no such program');
      },
    };
    const { lines } = await measure(absent, ['a', 'b'].map(softmax));
    expect(lines.map((line) => [line.outcome, line.text])).toEqual([
      ['failed', 'no such program'],
      ['failed', 'no such program'],
    ]);
  });
});

const python = process.env['INFERSCOPE_TEST_TORCH_PYTHON'];
describe.skipIf(!python)('the PyTorch runner', () => {
  it(
    'measures, counts on over processes, and keeps collectives for the end',
    { timeout: 120_000 },
    async () => {
      const reduce = {
        ...softmax('reduce'),
        kernel: 'all-reduce' as const,
        params: { bytes: 4096, ranks: 2 },
      };
      const runner = await torchRunner({ python: python!, device: 'cpu' });
      const { lines, capture, progress } = await measure(runner, [softmax('a'), reduce, softmax('b')]);
      expect(outcomes(lines)).toEqual([
        ['a', 'measured'],
        ['b', 'measured'],
        ['reduce', 'measured'],
      ]);
      for (const line of lines) {
        expect(line.samples_ns.length).toBeGreaterThanOrEqual(3);
        expect(Math.min(...line.samples_ns)).toBeGreaterThan(0);
        expect(line.max_error).toBeLessThan(1e-6);
      }
      expect(progress.map(({ case: name, done }) => [name, done])).toEqual([
        ['a', 0],
        ['b', 1],
        ['reduce', 2],
        ['reduce', 3],
      ]);
      expect(capture.device?.framework).toMatch(/^torch \d/);
    },
  );

  it('is killed in a case: only that case fails', { timeout: 120_000 }, async () => {
    const runner = await torchRunner({ python: python!, device: 'cpu' });
    let pid: number | null = null;
    const killed: KernelRunner = {
      ...runner,
      launch(order, control) {
        const launched = runner.launch(order, control);
        ({ pid } = launched);
        return launched;
      },
    };
    const { lines } = await measure(killed, ['a', 'victim', 'b'].map(softmax), {
      onProgress: ({ case: name }) => name === 'victim' && process.kill(pid!, 'SIGKILL'),
    });
    expect(outcomes(lines)).toEqual([
      ['a', 'measured'],
      ['victim', 'failed'],
      ['b', 'measured'],
    ]);
    expect(lines[1]!.text).toMatch(/killed \(SIGKILL\)/);
  });
});
