import { describe, expect, it } from 'vitest';
import type { Issue } from '../model/document.js';
import { profileDocumentSchema } from '../model/documents/profile.js';
import { figure, missing } from '../model/figure.js';
import { formatFigure } from './format.js';
import { collapsed, notices } from './notices.js';
import { bareProfile, hostileProfile, testProfile } from './test-profile.js';
import { headlineSentences, identityWords, missingReasons, stageSentence } from './words.js';

const plain = (text: string | undefined): string => (text ?? '').replaceAll('\u00a0', ' ');

describe('test profile', () => {
  it('is what the schema says and adds up', () => {
    for (const made of [testProfile(), bareProfile(), hostileProfile()]) profileDocumentSchema.parse(made);
    for (const stage of testProfile().data.stages.slice(0, 2)) {
      const bars = stage.bars.reduce((total, bar) => total + bar.ms, 0);
      expect(bars).toBeCloseTo(stage.duration_ms.value ?? 0, 9);
      const { breakdown } = stage;
      const classes = breakdown?.by_class.reduce((total, row) => total + row.ms, 0);
      expect(classes).toBeCloseTo(breakdown?.operators_ms ?? 0, 9);
    }
  });
});

describe('headline sentences', () => {
  it('say what ran and how fast, what bounds it, where memory goes', () => {
    const { data } = testProfile();
    const [run, bounds, memory] = headlineSentences(data).map(plain);
    expect(run).toContain(plain(formatFigure(data.latency.decode_tokens_per_s)));
    expect(run).toMatch(/; all 32 tokens take \d+(?:\.\d+)? ms ± \d+(?:\.\d+)? \(95 %, n = 12\)\.$/);
    expect(plain(identityWords(data.workload))).toBe(
      'llama-24m (random weights, float32) · onnxruntime 1.30.0 CPU, 1 thread · batch 1, 128 in + 32 out tokens',
    );
    expect(bounds).toMatch(
      /^Prefill is compute-bound: .*, 1\.\d times the .* roofline allows \(MFU \d+ % of 208 GFLOP\/s float32\)\./,
    );
    expect(bounds).toMatch(/A decode step is memory-bound: .* \(MBU \d+ % of 28\.4 GB\/s L3\)\.$/);
    expect(memory).toBe(
      'Memory peaks at 214 MiB: weights 92.0 MiB, runtime and mapped files 61.0 MiB, activations 9.00 MiB, KV cache 1.25 MiB, not itemised 50.8 MiB.',
    );
  });

  it('say what is missing and why', () => {
    const [, bounds, memory] = headlineSentences(bareProfile().data).map(plain);
    expect(bounds).toContain('is unknown: no roofline was measured on this machine');
    expect(memory).toBe('Memory was not sampled in this session.');
  });
});

it('one line per stage', () => {
  const { data } = testProfile();
  expect(plain(stageSentence(data.stages[1]!))).toMatch(
    /^decode: .* tok\/s; MFU .* %, MBU .* %, memory-bound$/,
  );
});

describe('notices', () => {
  it('name a utilisation over 100 % and an interrupted session before the rest', () => {
    const made = testProfile();
    made.data.session.status = 'interrupted';
    made.data.stages[1]!.mbu = figure(1.12, 'ratio', 'test');
    const codes = notices(made).map(({ code }) => code);
    expect(codes).toEqual(['session_interrupted', 'accounting_fault', 'outlier_repeats', 'no_clock']);
    expect(plain(notices(made)[1]?.text)).toContain('MBU of decode is 112 %');
    expect(plain(headlineSentences(made.data)[1])).toContain(
      'MBU 112 % of 28.4 GB/s L3, an accounting fault',
    );
  });

  it('say the same of several launches once, with their number and the range of what differs', () => {
    const busy = (mean: string, peak: string): Issue => ({
      code: 'machine_not_idle',
      severity: 'warning',
      text: `other processes used ${mean} of 2 cores (peak ${peak}).`,
    });
    const other: Issue = { code: 'cpu_steal', severity: 'warning', text: 'steal 3.5 %' };
    expect(collapsed([busy('1.05', '1.12'), other, busy('0.98', '10.2'), busy('1.01', '1.12')])).toEqual([
      { ...busy('0.98 to 1.05', '1.12 to 10.2'), count: 3 },
      other,
    ]);
  });

  it('say an interruption once, with what it means', () => {
    const made = testProfile();
    made.data.session.status = 'interrupted';
    made.issues.push({ code: 'interrupted', severity: 'warning', text: 'Stopped by Ctrl-C.' });
    const said = notices(made).filter(({ text }) => text.includes('Ctrl-C'));
    expect(said.map(({ severity, text }) => [severity, text])).toEqual([
      ['error', 'Stopped by Ctrl-C. The figures cover only what had been recorded by then.'],
    ]);
  });
});

it('missing figures are grouped by their reason', () => {
  const none = missing('a', 'no roofline');
  expect(
    missingReasons([
      ['MFU', none],
      ['time', figure(1, 'ms', 'x')],
      ['MBU', none],
      ['clock', missing('b', 'no cpufreq')],
    ]),
  ).toEqual(['MFU, MBU: no roofline', 'clock: no cpufreq']);
});
