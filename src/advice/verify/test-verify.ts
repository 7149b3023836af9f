import type { ExplainResult, Finding, StageWaterfall } from '../../model/documents/explain.js';
import { figure, missing } from '../../model/figure.js';

const session: ExplainResult['session'] = {
  id: '20261121-000000-a',
  name: null,
  title: 'a',
  kind: 'run',
  started_at: '2026-11-21T00:00:00.000Z',
  status: 'complete',
};

/** A decode stage of these bars, with an interval of ± `spread`. */
export function stageOf(bars: Record<string, number>, spread: number | null = 0.01): StageWaterfall {
  const total = Object.values(bars).reduce((sum, ms) => sum + ms, 0);
  const ci95: [number, number] = [total * (1 - (spread ?? 0)), total * (1 + (spread ?? 0))];
  return profiledDecode({
    measured_ms: figure(total, 'ms', 'measured', spread === null ? { n: 1 } : { n: 8, ci95 }),
    median_ms: total,
    bars: Object.entries(bars).map(([id, ms]) => ({ id, ms }) as StageWaterfall['bars'][number]),
  });
}

/** Eight decode steps under a profiler, without bars; fields of `change` replace its own. */
export const profiledDecode = (
  change: Pick<StageWaterfall, 'measured_ms' | 'median_ms'> & Partial<StageWaterfall>,
): StageWaterfall => ({
  kind: 'decode',
  name: null,
  source: 'trace',
  execution_id: 'profiled',
  point: null,
  instances: 8,
  p10_ms: null,
  clock: 'host',
  clock_why: '',
  clean_ms: missing('no_clean_execution', 'none'),
  roofline_ms: missing('no_model', 'none'),
  bound: null,
  new_tokens: null,
  roofs: [],
  bars: [],
  sum_error_share: 0,
  rows: [],
  ranks: [],
  ...change,
});

/** A finding of the decode step with this gain, ms. */
export function findingOf(id: string, stake: number, bars: string[], change: Partial<Finding> = {}): Finding {
  return {
    id: `${id}:decode`,
    rule: id,
    severity: 'high',
    stage: 'decode',
    title: id,
    at_stake_ms: stake,
    at_stake_share: stake / 10,
    cause: '',
    change: { kind: 'code', text: '', example: null },
    gain: {
      per: 'stage',
      expected_ms: stake,
      low_ms: 0.8 * stake,
      high_ms: 1.1 * stake,
      after_ms: 0,
      assumption: '',
      what_if: null,
    },
    confidence: 'high',
    bars,
    evidence: [],
    hidden_by: null,
    references: [],
    check: '',
    ...change,
  };
}

/** An explanation of these stages and findings. */
export const explanationOf = (
  stages: StageWaterfall[],
  findings: Finding[],
  withheld: ExplainResult['withheld'] = [],
): ExplainResult => ({
  machine: { busy: withheld.length > 0, usable_cores: 2, signs: [] },
  withheld,
  session,
  workload: null,
  preface: [],
  sentences: [],
  stages,
  without_waterfall: [],
  findings,
  rules: [],
  next_steps: [],
});
