import { expect } from 'vitest';
import type { Document } from '../model/document.js';
import type { ProfileResult, StageResult } from '../model/documents/profile.js';
import type { Figure } from '../model/figure.js';
import type { Row } from '../model/tables.js';
import { repetitions, type Repetition, type Rows } from './test-session.js';

const nsPerMs = 1e6;

/** Two launches, each a warm-up repeat and two timed ones. */
const common = { samplingMs: [1, 0.5, 0.5], loopMs: 0.25 };
export const clean: Repetition[] = [
  {
    ...common,
    pid: 100,
    launch: 0,
    iteration: 0,
    warmup: true,
    startMs: 0,
    prefillMs: 90,
    decodeMs: [40, 60],
  },
  { ...common, pid: 100, launch: 0, iteration: 1, startMs: 1000, prefillMs: 9, decodeMs: [4, 6] },
  { ...common, pid: 100, launch: 0, iteration: 2, startMs: 1100, prefillMs: 11, decodeMs: [4, 6] },
  {
    ...common,
    pid: 101,
    launch: 1,
    iteration: 8,
    warmup: true,
    startMs: 2000,
    prefillMs: 90,
    decodeMs: [40, 60],
  },
  { ...common, pid: 101, launch: 1, iteration: 9, startMs: 3000, prefillMs: 19, decodeMs: [8, 10] },
  { ...common, pid: 101, launch: 1, iteration: 10, startMs: 3100, prefillMs: 21, decodeMs: [8, 10] },
];
export const profiled: Repetition = {
  ...common,
  execution: 'profiled',
  pid: 200,
  launch: 0,
  iteration: 1,
  startMs: 5000,
  prefillMs: 30,
  decodeMs: [12, 14],
};

type Piece =
  | { op: Row<'ops'>['class']; layer: number | null; ms: number }
  | { gap: 'host.runtime_dispatch' | 'host.runtime_call'; ms: number };
const edge = (ms: number): Piece => ({ gap: 'host.runtime_call', ms });
const dispatch = (ms: number): Piece => ({ gap: 'host.runtime_dispatch', ms });
const op = (name: string, layer: number | null, ms: number): Piece => ({ op: name, layer, ms });

/** Operators and gaps of a profiled stage in sequence from its start. */
function pieceRows(stage: Row<'stages'>, list: Piece[]): Required<Pick<Rows, 'ops' | 'gaps'>> {
  const rows = { ops: [] as Row<'ops'>[], gaps: [] as Row<'gaps'>[] };
  let nowNs = stage.start_ns!;
  for (const piece of list) {
    const { stage_id } = stage;
    const row = {
      execution_id: 'profiled',
      capture_id: 'profiled-trace',
      pid: 200,
      tid: 200,
      stage_id: stage_id!,
      start_ns: nowNs,
      dur_ns: piece.ms * nsPerMs,
    };
    if ('gap' in piece) rows.gaps.push({ ...row, cause: piece.gap });
    else {
      rows.ops.push({
        ...row,
        name: `/${piece.op}/${piece.layer}`,
        op_type: 'X',
        class: piece.op!,
        layer: piece.layer,
        input_shapes: '[[1]]',
      });
    }
    nowNs += piece.ms * nsPerMs;
  }
  return rows;
}

export function profileRows(): Rows {
  const rows = repetitions(clean);
  const profiledRows = repetitions([{ ...profiled, iteration: 0, warmup: true, startMs: 4000 }, profiled]);
  const timed = profiledRows.stages!.filter((stage) => !stage.warmup);
  const prefill = timed.find((stage) => stage.kind === 'prefill')!;
  const [first, second] = timed.filter((stage) => stage.kind === 'decode');
  const ops = [
    // One of 30 ms is in neither an operator nor a gap.
    pieceRows(prefill, [op('gemm', 0, 29)]),
    pieceRows(first!, [
      edge(1),
      op('gemm', 0, 6),
      dispatch(1),
      op('attention', 0, 2),
      op('copy', null, 1),
      edge(1),
    ]),
    pieceRows(second!, [
      edge(1),
      op('gemm', 1, 8),
      dispatch(1),
      op('attention', 0, 2),
      op('copy', null, 1),
      edge(1),
    ]),
    // A warm-up stage, which must not be in any result.
    pieceRows(
      profiledRows.stages!.find((stage) => stage.kind === 'decode')!,
      [op('other', 0, 7)],
    ),
  ];
  const point = (t_ms: number, bytes: number, name: string | null, pid = 100): Row<'memory'> => ({
    pid,
    t_ns: t_ms * nsPerMs,
    bytes,
    kind: name === 'peak' ? 'peak_rss' : 'rss',
    point: name,
    source: 'VmRSS',
    ...(name === null ? { capture_id: 'clean-host' } : {}),
  });
  const sample = (t_ms: number, scope: string, metric: string, value: number): Row<'telemetry'> => ({
    pid: 100,
    t_ns: t_ms * nsPerMs,
    scope,
    metric,
    value,
  });
  return {
    stages: [...rows.stages!, ...profiledRows.stages!],
    iterations: [...rows.iterations!, ...profiledRows.iterations!],
    ops: ops.flatMap((piece) => piece.ops),
    gaps: ops.flatMap((piece) => piece.gaps),
    memory: [
      point(1, 400_000, 'baseline'),
      point(500, 700_000, null),
      point(900, 800_000, 'post_warmup'),
      point(1200, 850_000, 'peak'),
      // The second launch is another process, which the result must not use.
      point(2000, 1, 'baseline', 101),
      point(3200, 9e9, 'peak', 101),
    ],
    telemetry: [
      // Repeat 1 runs from 1000 to 1021.75 ms: two samples are inside, one is before.
      sample(500, 'host', 'utilization_percent', 10),
      sample(1005, 'host', 'utilization_percent', 50),
      sample(1015, 'host', 'utilization_percent', 60),
      sample(1005, 'other_processes', 'cores_busy', 0.25),
      sample(1015, 'other_processes', 'cores_busy', 0.75),
    ],
  };
}

/** Compares to nine digits, because figures are sums of doubles. */
export function expectClose(figure: Figure | number | null | undefined, expected: number): void {
  const value = typeof figure === 'object' && figure !== null ? figure.value : figure;
  expect(value).not.toBeNull();
  expect(value! / expected).toBeCloseTo(1, 9);
}
export const stageOf = (result: Document<ProfileResult>, kind: StageResult['kind']) =>
  result.data.stages.find((stage) => stage.kind === kind)!;
export const reasonOf = (figure: Figure) => (figure.value === null ? figure.reason.code : figure.value);
