import type { StageWaterfall } from '../../model/documents/explain.js';
import type { MissingFigure } from '../../model/figure.js';
import { percentile } from '../../model/statistics.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { meanOverLaunches } from '../statistics.js';
import { shapeOf } from '../utilization/groups.js';
import type { SizedStep } from '../utilization/sizes.js';
import type { StageContext } from '../utilization/stage-context.js';
import { readRecordedStages } from '../utilization/utilization.js';
import { peaksAt } from './bench-waterfalls.js';
import { readLoadStage } from './composed-stages.js';
import { meanSequences } from './group-steps.js';
import { needFields } from './group-needs.js';
import { meanNecessary, peakLines, type NecessaryTime } from './necessary.js';
import { describeBar } from './words.js';

const maxRows = 64;

/**
 * Waterfalls of steps recorded without a profiler (hooks of `run`): the roofline, and the time above it, which only a
 * timeline splits. Each batch size has a waterfall.
 */
export async function recordedWaterfalls(
  session: Session,
  database: SessionDatabase,
): Promise<StageWaterfall[]> {
  const { groups, ...stageFacts } = await readRecordedStages(session, database);
  const evaluator = session.manifest.workload?.device === 'cpu' ? 'torch' : 'nsys';
  const stages = groups.map(({ executionId, steps }) =>
    waterfallOf(executionId, steps, {
      ...stageFacts,
      better_capture: `inferscope run --evaluator ${evaluator} -- <command>`,
    }),
  );
  for (const executionId of new Set(groups.map((group) => group.executionId))) {
    const load = await readLoadStage(database, executionId, 'record');
    if (load) stages.push(load);
  }
  return stages.map((stage) => ({
    ...stage,
    point: stages.filter(({ kind }) => kind === stage.kind).length > 1 ? stage.point : null,
  }));
}

/** Necessary time of the steps, and the peaks it is computed with. */
function needOf(
  steps: readonly SizedStep[],
  shape: ReturnType<typeof shapeOf>,
  { model, roofs }: Pick<StageContext, 'roofs' | 'model'>,
): { necessary: NecessaryTime | MissingFigure; lines: string[] } {
  if ('reason' in model) return { necessary: model, lines: [] };
  if ('reason' in shape) return { necessary: shape, lines: [] };
  const peaks = peaksAt(roofs, model.model, shape);
  const necessary = meanNecessary(steps, model.model, peaks);
  return { necessary, lines: 'reason' in necessary ? [] : peakLines(model.model, shape, peaks) };
}

function waterfallOf(
  executionId: string,
  steps: readonly SizedStep[],
  { model, roofs, better_capture }: Pick<StageContext, 'roofs' | 'model'> & { better_capture: string },
): StageWaterfall {
  const first = steps[0]!;
  const byDevice = steps.every((step) => 'by_device' in step && step.by_device === true);
  const times = steps.map(({ wall_ns }) => wall_ns / 1e6);
  const source = byDevice ? 'device events around the steps' : 'stages of the record';
  const time = meanOverLaunches(
    steps.map(({ pid, wall_ns }) => ({ launch: pid, value: wall_ns / 1e6 })),
    'ms',
    source,
  );
  const measured = time.value ?? 0;
  const shape = shapeOf(first);
  const { necessary, lines } = needOf(steps, shape, { model, roofs });
  const rooflineMs = 'reason' in necessary ? 0 : necessary.rooflineMs;
  const sorted = times.toSorted((a, b) => a - b);
  const split = (ms: number) => [
    ...('reason' in necessary ? [] : [{ id: 'roofline', ms: rooflineMs }]),
    { id: 'unattributed', ms: ms - rooflineMs },
  ];
  return {
    kind: first.kind,
    name: null,
    source: 'record',
    execution_id: executionId,
    point: first.batch_size === null ? null : `batch ${first.batch_size}`,
    instances: steps.length,
    measured_ms: time,
    median_ms: percentile(sorted, 0.5),
    p10_ms: percentile(sorted, 0.1),
    clock: byDevice ? 'device' : 'host',
    clock_why: byDevice
      ? 'events of the device, recorded by the hooks without waiting for it'
      : 'time stamps of the host around the step',
    clean_ms: time,
    ...needFields(necessary),
    sequences: meanSequences(steps),
    roofs: lines,
    bars: split(measured).map(({ id, ms }) => ({
      id,
      ms,
      share: measured > 0 ? ms / measured : 0,
      count: null,
      ...describeBar(id, { peaksMeasured: true, kind: first.kind }),
      better_capture: id === 'unattributed' ? better_capture : null,
      sql: null,
      note:
        id === 'roofline'
          ? 'max(Σ FLOPs / peak, Σ bytes / bandwidth) of the whole stage'
          : `${'reason' in necessary ? 'the whole time, because the roofline is not known' : 'time above the roofline'}; its causes are in a timeline`,
      parts: [],
    })),
    sum_error_share: 0,
    rows: steps.slice(0, maxRows).map(({ stage_id, kind, step_index, wall_ns }) => ({
      stage_id,
      label: step_index === null ? kind : `${kind} ${step_index}`,
      measured_ms: wall_ns / 1e6,
      bars: split(wall_ns / 1e6),
    })),
    ranks: [{ rank: null, device: null, measured_ms: measured }],
  };
}
