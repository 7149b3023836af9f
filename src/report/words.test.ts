import { describe, expect, it } from 'vitest';
import { profileDocumentSchema } from '../model/documents/profile.js';
import { figure, missing } from '../model/figure.js';
import { formatFigure } from './format.js';
import { bareProfile, hostileProfile, testProfile } from './test-profile.js';
import { headlineSentences, missingReasons, notices, stageSentence, suggestionSentence } from './words.js';

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
    expect(run).toContain(
      'llama-24m (random weights, float32) on onnxruntime 1.30.0 CPU, 1 thread, batch 1, 128 → 32 tokens',
    );
    expect(run).toContain(plain(formatFigure(data.latency.decode_tokens_per_s)));
    expect(run).toMatch(/the whole takes \d+(?:\.\d+)? ms ± \d+(?:\.\d+)? \(95 %, n = 12\) for 32 tokens\.$/);
    expect(bounds).toMatch(
      /^Prefill is compute-bound: .* where this machine's roofline allows .* \(MFU \d+ %\)\./,
    );
    expect(bounds).toMatch(/A decode step is memory-bound: .* \(MBU \d+ % of 28\.4 GB\/s L3\)\.$/);
    expect(memory).toBe(
      'Memory peaks at 214 MiB: weights 92.0 MiB, runtime 61.0 MiB, residual 50.8 MiB, activations 9.00 MiB, KV cache 1.25 MiB.',
    );
  });

  it('say what is missing and why', () => {
    const [, bounds, memory] = headlineSentences(bareProfile().data).map(plain);
    expect(bounds).toContain('is unknown: no roofline was measured on this machine');
    expect(memory).toBe('Memory was not sampled in this session.');
  });
});

it('one line a stage, one a suggestion', () => {
  const { data } = testProfile();
  expect(plain(stageSentence(data.stages[1]!))).toMatch(
    /^decode: .* tok\/s; MFU .* %, MBU .* %, memory-bound$/,
  );
  expect(plain(suggestionSentence(data.suggestions[0]!))).toBe(
    'int4 weights → 1.28 ms per token expected (try --dtype int4)',
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
    expect(plain(headlineSentences(made.data)[1])).toContain('MBU 112 % (accounting fault)');
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
