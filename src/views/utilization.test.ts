import { expect, test } from 'vitest';
import { document } from '../model/document.js';
import type { UtilizationResult, UtilizationStage } from '../model/documents/utilization.js';
import { figure, missing } from '../model/figure.js';
import { pageOfView } from '../render/html/view.js';
import { terminalView } from '../render/terminal/view.js';
import { plainText, rawValue } from '../render/value.js';
import { hostileText } from './test-profile.js';
import type { TracePhase } from '../model/documents/trace.js';
import { utilizationSection, utilizationView } from './utilization.js';

const none = missing('no_roofline', 'no roofline was measured');
/** 27.3 MFLOP and 25.8 MB in 16.7 ms on an H200. */
const decode: UtilizationStage = {
  execution_id: 'profiled',
  kind: 'decode',
  batch_size: 1,
  point: null,
  steps: 12,
  time_ms: figure(16.7, 'ms', 'windows'),
  profiled: true,
  new_tokens: 1,
  context_tokens_sum: 66.5,
  sizes_from: 'the sizes given',
  tokens_per_s: figure(60, 'tok/s', 'hand'),
  flops: figure(27.3e6, 'FLOP', 'model arithmetic'),
  bytes: figure(25.8e6, 'B', 'model arithmetic'),
  peak_flops_per_s: figure(989e12, 'FLOP/s', 'data sheet'),
  peak_bandwidth_bytes_per_s: figure(4.8e12, 'B/s', 'data sheet'),
  mfu: figure(1.7e-6, 'ratio', 'hand'),
  mbu: figure(1.2, 'ratio', 'hand'),
  bound: 'memory',
  roof_ms: none,
  roof_share: none,
  work: [{ name: 'lm_head', class: 'gemm', dtype: 'float16', ops: 1, flops: 4.19e6, bytes: 4.2e6 }],
  executed: {
    source: null,
    gemm_flops: none,
    attention_flops: none,
    flops: none,
    mfu: none,
    over_necessary: none,
    gemm_time_covered: null,
    text: null,
  },
};
const step = {
  iteration: 0,
  step_index: 1,
  wall_ns: 3.07e6,
  new_tokens: 1,
  context_tokens_sum: 65,
  flops: 27.3e6,
  bytes: 25.8e6,
  mfu: 9e-6,
  mbu: 0.002,
};
const resultOf = (stage: UtilizationStage): UtilizationResult => ({
  model: { name: 'llama-tiny', dtype: 'float16', from: '--model' },
  device: { name: 'NVIDIA H200', kind: 'gpu', devices: 1 },
  stages: [stage],
  session: { id: 's', name: null, title: 'a session' },
  steps: [Array.from({ length: 10 }, (_, index) => ({ ...step, step_index: index }))],
});
const viewOf = (stage: UtilizationStage, formulas: boolean) =>
  utilizationView(document('utilization', '1.1', resultOf(stage)), formulas);
const tables = (stage: UtilizationStage) =>
  viewOf(stage, true).lead.flatMap((block) =>
    block.type === 'table'
      ? [
          block.rows.map(({ cells }) =>
            Object.fromEntries(block.columns.map(({ id }, index) => [id, rawValue(cells[index] ?? '')])),
          ),
        ]
      : [],
  );

test('shows stages, the first steps and the operations with every number', () => {
  const [stages, steps, work] = tables(decode);
  expect(stages).toMatchObject([
    { stage: 'decode step', steps: 12, time_ms: 16.7, tokens_per_s: 60, mfu: 1.7e-6, roof_share: null },
  ]);
  expect(steps).toHaveLength(8);
  expect(steps![1]).toEqual({
    step: '0.1',
    wall_ns: 3.07e6,
    new_tokens: 1,
    context_tokens: 65,
    flops: 27.3e6,
    bytes: 25.8e6,
    mfu: 9e-6,
    mbu: 0.002,
  });
  expect(work).toEqual([{ operation: 'lm_head', ops: 1, dtype: 'float16', flops: 4.19e6, bytes: 4.2e6 }]);
});

test('formulas contain the numbers; a share over 1 is invalid; a missing roofline has its reason', () => {
  const facts = Object.fromEntries(
    viewOf(decode, true)
      .lead.flatMap((block) => (block.type === 'facts' ? block.items : []))
      .map(({ name, text }) => [name, plainText(text).replaceAll('\u00a0', ' ')]),
  );
  expect(facts['MFU']).toBe('FLOPs / t / peak = 27.3 MFLOP / 16.7 ms / 989 TFLOP/s = <0.01 %');
  expect(facts['MBU']).toContain('120 % (invalid)');
  expect(facts['of roof']).toContain('no roofline was measured');
  expect(terminalView(viewOf(decode, false), { width: 80 })).not.toContain('FLOPs / t');
});

test('for a timeline without a model only the page has the section, which says how to name one', () => {
  expect(utilizationSection(null)).toBeNull();
  expect(utilizationSection(resultOf(decode))).toMatchObject({ level: 2 });
  expect(utilizationSection({ ...resultOf(decode), model: null })).toMatchObject({
    level: 3,
    blocks: [{ type: 'missing' }],
  });
});

test('says why steps without the profiler have other batches than the phases', () => {
  const notesFor = (sizes: readonly number[]) => {
    const by_batch = sizes.map((batch_size) => ({ batch_size })) as TracePhase['by_batch'];
    const stage = { ...decode, batch_size: 3, profiled: false };
    const section = utilizationSection(resultOf(stage), [{ kind: 'decode', by_batch } as TracePhase]);
    return section!.blocks.flatMap((block) => (block.type === 'notes' ? block.items : []));
  };
  expect(notesFor([2, 8])).toContainEqual(expect.stringContaining('formed other batches'));
  expect(notesFor([3, 8])).toEqual([]);
  expect(notesFor([])).toEqual([]);
});

test.each([80, 120])('lines fit %i columns; hostile names cannot inject anything', (width) => {
  const view = viewOf({ ...decode, point: hostileText }, true);
  for (const line of terminalView(view, { width, level: 2 }).split('\n'))
    expect([...line].length, line).toBeLessThanOrEqual(width);
  expect(pageOfView(view, { clientScript: '' })).not.toContain('<img');
});
