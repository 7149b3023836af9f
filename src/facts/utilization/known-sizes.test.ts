import { describe, expect, test } from 'vitest';
import type { Figure } from '../../model/figure.js';
import type { Row } from '../../model/tables.js';
import { testHome } from '../../session/test-folder.js';
import { ms, sessionsIn, step } from './test-hand.js';
import { tinyAttention, tinyHead, tinyLinear } from './test-tiny.js';
import { analyzeUtilization } from './utilization.js';

const sessionOf = sessionsIn(testHome());

const valueOf = (figure: Figure): number => {
  if (figure.value === null) throw new Error(figure.reason.text);
  return figure.value;
};
const reasonOf = (figure: Figure) => (figure.value === null ? figure.reason.code : null);

describe('sizes from one execution apply to the others of the session', () => {
  const shapes = (
    execution_id: string,
    stage_id: number,
    op_id: number,
    batch: number,
    context: number,
  ): Row<'ops'>[] =>
    [
      { name: 'aten::embedding', input_shapes: `[[4096,512],[${batch},1]]` },
      {
        name: 'aten::scaled_dot_product_attention',
        input_shapes: `[[${batch},8,1,64],[${batch},8,${context},64],[${batch},8,${context},64]]`,
      },
    ].map((row, index) => ({
      execution_id,
      stage_id,
      op_id: op_id + index,
      start_ns: 0,
      dur_ns: 1000,
      ...row,
    }));
  const decodes = (execution_id: string, n: number): Row<'stages'>[] =>
    Array.from({ length: n }, (_, index) =>
      step(execution_id, 'decode', 10 * index, 10 * index + 8, { step_index: index }),
    ).map((row) => ({ ...row, phase_id: row.stage_id! }));
  const kernels = (execution_id: string, stages: Row<'stages'>[], each: number): Row<'kernels'>[] =>
    stages.flatMap(({ stage_id, start_ns }) =>
      Array.from({ length: each }, (_, index) => ({
        execution_id,
        stage_id: stage_id!,
        device: 0,
        stream: 1,
        name: 'gemm',
        class: 'gemm',
        start_ns: Number(start_ns) + (1 + index) * ms,
        dur_ns: ms,
        exclusive_ns: ms,
      })),
    );

  test.each([
    { name: 'the capture with shapes leads', torch: 2, nsys: 1 },
    { name: 'the capture without leads', torch: 1, nsys: 2 },
  ])('$name: sizes, MFU and MBU are known, also for the clean execution', async ({ torch, nsys }) => {
    const [traced, added, clean] = [decodes('torch', 2), decodes('nsys', 2), decodes('clean', 2)];
    const rows = {
      stages: [...traced, ...added, ...clean],
      ops: traced.flatMap(({ stage_id }, index) =>
        shapes('torch', Number(stage_id), 2 * index, 4, 65 + index),
      ),
      kernels: [...kernels('torch', traced, torch), ...kernels('nsys', added, nsys)],
    };
    for (const purposes of [
      { torch: 'profiled', nsys: 'profiled' },
      { torch: 'profiled', nsys: 'profiled', clean: 'clean' },
    ] as const) {
      const executionRows = 'clean' in purposes ? rows : { ...rows, stages: [...traced, ...added] };
      const { data } = await analyzeUtilization(await sessionOf(executionRows, purposes));
      const [decode] = data.stages;
      expect(decode).toMatchObject({ batch_size: 4, new_tokens: 4 });
      // 4 sequences with caches of 65 and 66 tokens.
      expect(valueOf(decode!.flops)).toBe(4 * (2 * (tinyLinear + tinyHead) + tinyAttention * 65.5));
      expect([reasonOf(decode!.mfu), reasonOf(decode!.mbu)]).toEqual([null, null]);
    }
  });

  test.each([
    { name: 'fewer steps', code: 'other_step_count', others: [[3, 4]] },
    {
      name: 'executions that disagree',
      code: 'unknown_sizes',
      others: [
        [2, 4],
        [2, 8],
      ],
    },
  ])('$name give no sizes, and the stage says why', async ({ code, others }) => {
    const added = decodes('nsys', 2);
    const traced = others.map(([n, batch], index) => ({
      id: `torch-${index}`,
      batch: batch!,
      stages: decodes(`torch-${index}`, n!),
    }));
    const rows = {
      stages: [...added, ...traced.flatMap(({ stages }) => stages)],
      ops: traced.flatMap(({ id, batch, stages }) =>
        stages.flatMap(({ stage_id }, index) => shapes(id, Number(stage_id), 2 * index, batch, 65 + index)),
      ),
      kernels: kernels('nsys', added, 1),
    };
    const purposes = Object.fromEntries(
      ['nsys', ...traced.map(({ id }) => id)].map((id) => [id, 'profiled' as const]),
    );
    const [decode] = (await analyzeUtilization(await sessionOf(rows, purposes))).data.stages;
    expect([reasonOf(decode!.mfu), reasonOf(decode!.mbu)]).toEqual([code, code]);
  });
});
