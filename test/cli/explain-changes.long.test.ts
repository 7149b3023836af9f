import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { verifyDocumentSchema, whatIfDocumentSchema } from '../../src/model/documents/explain.js';
import { expectFailure, inferscope, createSetup, widestLine } from './run-cli.js';
import { fixture } from './capture-files.js';

const setup = createSetup();

// A decode step on an H200 that waits for 134 launches, and the same step fixed with a CUDA graph.
beforeAll(() => {
  for (const variant of ['fault', 'fixed']) {
    const result = inferscope(setup, [
      'session',
      'import',
      fixture(`diagnosis/launch_bound_decode-${variant}.tgz`),
    ]);
    expect(result.status, result.stderr).toBe(0);
  }
});

const explain = (...args: string[]) => inferscope(setup, ['explain', 'launch_bound_decode-fault', ...args]);

describe('explain --what-if', () => {
  test('predicts the time with its interval, for one change and for several', () => {
    const single = explain('--what-if', 'cudagraph');
    expect(single.status, single.stderr).toBe(0);
    expect(single.stdout).toMatch(
      /what if\s+cudagraph\n\n {2}Decode step: .* → .* \(.* to .*\), [\d.]+× as fast\./,
    );
    expect(single.stdout).toMatch(/launch call +[\d.]+ ms +0\.0+ ms/);
    expect(widestLine(single.stdout)).toBeLessThanOrEqual(80);
    const several = explain('--what-if', 'cudagraph', '--what-if', 'batch-size=8,gpu=A100', '--json');
    const { data } = whatIfDocumentSchema.parse(JSON.parse(several.stdout));
    expect(data.change).toBe('cudagraph, batch-size=8, gpu=A100');
    expect(data.stages[0]!.per_token_after_ms).toBeCloseTo(data.stages[0]!.after_ms.value! / 8, 9);
  });

  test('rejects an unknown change and lists the known ones', () => {
    const word = expectFailure(explain('--what-if', 'graphs', '--json'), 2, 'E_USAGE');
    expect(word.why).toContain('cudagraph, batch-size=N');
    const gpu = expectFailure(explain('--what-if', 'int4,gpu=H999', '--json'), 2, 'E_USAGE');
    expect(gpu.what).toContain('H999');
  });
});

describe('explain --verify', () => {
  test('shows expected next to achieved, as text, Markdown, JSON and a page', () => {
    const text = explain('--verify', 'launch_bound_decode-fixed');
    expect(text.status, text.stderr).toBe(0);
    expect(text.stdout).toMatch(
      /^ +1 +Launch-bound: [^]*?^ +gone +[\d.]+ ms \([\d.]+ to [\d.]+ ms\) +[\d.]+ ms/m,
    );
    expect(widestLine(text.stdout)).toBeLessThanOrEqual(80);
    const json = explain('--verify', 'launch_bound_decode-fixed', '--json');
    const { data } = verifyDocumentSchema.parse(JSON.parse(json.stdout));
    expect(data.changes[0]).toMatchObject({ finding: 'launch_bound:decode', outcome: 'gone' });
    // Interleaved timings: 5.86 ms before, 1.62 ms after (test/fixtures/diagnosis/timings.json).
    expect(Math.abs(data.changes[0]!.achieved_ms! - 4.24) / 4.24).toBeLessThan(0.1);
    const page = join(setup.scratch, 'verified.html');
    const md = explain('--verify', 'launch_bound_decode-fixed', '--format', 'md', '--html', page);
    expect(md.stdout).toMatch(/^## inferscope explain --verify: /);
    expect(md.stderr).toContain(`page written: ${page}`);
    expect(readFileSync(page, 'utf8')).toMatch(/<section id="verify"[^]*<section id="waterfall"/);
    const two = explain('--verify', 'launch_bound_decode-fixed', '--what-if', 'cudagraph', '--json');
    expectFailure(two, 2, 'E_USAGE');
  });

  test('rejects the session itself', () => {
    expectFailure(explain('--verify', 'launch_bound_decode-fault', '--json'), 2, 'E_USAGE');
  });
});
