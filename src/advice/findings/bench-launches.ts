import { knownEngine } from '../../llm/memory-request.js';
import type { BenchPointResult, BenchVariant } from '../../model/documents/bench.js';
import type { StageWaterfall } from '../../model/documents/explain.js';
import type { Workload } from '../../model/manifest.js';
import { onCpu, remoteDevice } from '../../facts/bench/machine.js';
import { usesGraphs } from '../../facts/bench/roof.js';
import { deviceOf } from '../../facts/device.js';
import { gpuRoofs, readStoredGpuRoofline } from '../../facts/roofs.js';
import { graphNode, nodeGapNs, slowNodeGapNs, staticCacheSource, staticCacheShare } from './idle-causes.js';
import { launchBoundChange } from './launch-changes.js';
import { benchStepSql } from './queries/bench-queries.js';
import type { FindingContext, FoundDraft, RuleOutcome } from './rule.js';
import { benchOf } from './session-analyses.js';
import { minShare } from './stage-rule.js';
import { instanceWord, count, everyInstance, ms, part, plural } from './words.js';
import { formatCount, formatPercent, formatNs } from '../../vocabulary/format.js';
import { mean } from '../../model/statistics.js';
import { uncapitalize } from '../../vocabulary/sentence.js';
import { pointLabel } from '../../vocabulary/bench.js';

/** With fewer kernels, launching is not the bottleneck. */
const minKernels = 20;
/** Share of a step: above it, the gain is smaller than the run-to-run difference. */
const maxBusyShare = 0.9;

interface StepLaunches {
  /** Mean step, in ms: wall time, device busy time, and idle time while the host computes. */
  step_ms: number;
  busy_ms: number;
  dispatch_ms: number;
  kernels: number;
}

/**
 * Time that a CUDA graph of the step saves: host dispatch time minus the gaps between graph nodes. Low: the largest measured
 * gaps, and kernels slowed by a static cache; high: kernels overlap without gaps.
 * @param nodeNs period from one graph node to the next
 */
export function graphGain(
  { busy_ms, dispatch_ms, kernels }: StepLaunches,
  nodeNs: number,
): { expected_ms: number; low_ms: number; high_ms: number } {
  const remainingMs = (ns: number) => Math.max(0, dispatch_ms - (kernels * ns) / 1e6);
  return {
    expected_ms: remainingMs(nodeNs),
    low_ms: Math.max(0, remainingMs(Math.max(slowNodeGapNs, nodeNs)) - staticCacheShare * busy_ms),
    high_ms: dispatch_ms,
  };
}

/**
 * Launch-bound decode steps of a benchmark, which records no launch calls: judged by the kernels counted in its instrumented
 * repeat and the idle time while the process computes, at the point that the waterfall's sentences describe.
 * @returns null for a session without a benchmark on a GPU
 */
export async function launchesOfBench(context: FindingContext): Promise<RuleOutcome | null> {
  const { workload } = context.manifest;
  if (!workload || onCpu(workload) || workload.device === remoteDevice) return null;
  const bench = await benchOf(context);
  const stage = context.waterfalls.find(({ kind, source }) => kind === 'decode' && source === 'bench');
  if (!bench || !stage) return null;
  const variant = bench.data.variants.find(({ execution_id: id }) => id === stage.execution_id);
  const point = variant?.points.find((candidate) => candidate.point === stage.point);
  if (!variant || !point) return null;
  if (usesGraphs(workload, variant.engine_args))
    return { outcome: 'not_fired', why: 'decode: steps are already replayed as CUDA graphs.' };
  const step = launchesOf(stage, point);
  if (!step)
    return { outcome: 'not_applicable', why: 'The benchmark counted no kernels in its decode steps.' };
  const { step_ms, busy_ms, dispatch_ms, kernels } = step;
  if (
    dispatch_ms < minShare * step_ms ||
    kernels < minKernels ||
    dispatch_ms < (kernels * nodeGapNs) / 1e6 ||
    busy_ms > maxBusyShare * step_ms
  )
    return {
      outcome: 'not_fired',
      why: `decode: the device is busy ${part(busy_ms, step_ms)} of the time; the host dispatches ${plural(kernels, 'kernel')} in ${part(dispatch_ms, step_ms)}.`,
    };
  return { outcome: 'fired', findings: [await finding(context, { workload, variant, point, stage, step })] };
}

function launchesOf(stage: StageWaterfall, { device_work: work }: BenchPointResult): StepLaunches | null {
  const [kernels, idle, measured] = [work.decode_kernels, work.decode_idle_share, stage.measured_ms];
  if (kernels.value === null || idle.value === null || measured.value === null) return null;
  return {
    step_ms: measured.value,
    busy_ms: measured.value * (1 - idle.value),
    dispatch_ms: stage.bars.find(({ id }) => id === 'host.dispatch')?.ms ?? 0,
    kernels: kernels.value,
  };
}

interface LaunchBoundStep {
  workload: Workload;
  variant: BenchVariant;
  point: BenchPointResult;
  stage: StageWaterfall;
  step: StepLaunches;
}

async function finding(context: FindingContext, bound: LaunchBoundStep): Promise<FoundDraft> {
  const { workload, variant, point, step } = bound;
  const { step_ms, busy_ms, dispatch_ms, kernels } = step;
  const node = graphNode(
    gpuRoofs(deviceOf(context.manifest, null).name, await readStoredGpuRoofline(context.session)),
  );
  const gain = graphGain(step, node.ns);
  const { evidence } = await context.evidence<StepEvidence>(
    benchStepSql(variant.execution_id, point.point),
    stepEvidenceText,
  );
  const change = await changeOf(context, workload, variant.engine_args);
  return {
    stage: 'decode',
    title: (share) =>
      `Launch-bound: the device waits ${share} of ${everyInstance('decode')} for the host, which dispatches ${plural(kernels, 'kernel')}`,
    at_stake_ms: dispatch_ms,
    cause: `${instanceWord('decode')} takes ${ms(step_ms)} at ${pointLabel(point.point)}; the device is busy for ${ms(busy_ms)}. The process computes for ${ms(dispatch_ms)} of the rest, ${ms(dispatch_ms / kernels)} per kernel (${count(kernels)} kernels): the host dispatches kernels more slowly than the device runs them, so the device waits after every kernel. A benchmark records no launch calls; inferscope run --evaluator none,nsys -- <command> shows the operators that launch them.`,
    change,
    gain: {
      ...gain,
      after_ms: step_ms - gain.expected_ms,
      assumption: `Kernels take as long as now and follow each other ${node.words}; host work between steps stays. Low: ${formatNs(slowNodeGapNs)}, and kernels take ${formatPercent(staticCacheShare)} longer with the static KV cache that a graph needs (${staticCacheSource}).`,
      what_if: 'cudagraph',
    },
    confidence: 'medium',
    removes: 'idle',
    bars: ['host.dispatch'],
    evidence: [evidence],
    check: checkOf(change),
  };
}

const modeSwitch = '--engine-arg mode=cudagraph';

function checkOf({ example }: FoundDraft['change']): string {
  return example?.startsWith(modeSwitch)
    ? 'inferscope bench latency … --engine-arg mode=eager,cudagraph --launches 4 --name modes, then inferscope bench compare modes:mode=eager modes:mode=cudagraph'
    : 'run the same benchmark with the changed program, then inferscope explain @last~1 --verify @last';
}

/** The benchmark's switch if its engine has one, then the change for a user's own program. */
async function changeOf(
  context: FindingContext,
  { engine, tensor_parallel_size: ranks }: Workload,
  args: Record<string, string>,
): Promise<FoundDraft['change']> {
  const programChange = await launchBoundChange(context, { kind: 'decode', graph_launches: 0 }, args);
  // This engine does not capture collectives of several ranks (src/engines/transformers/engine-args.ts).
  if (knownEngine(engine.name) !== 'transformers' || ranks > 1) return programChange;
  // A static cache is not supported with it either.
  const attention = args['attn'] === 'flash_attention_2' ? ' --engine-arg attn=sdpa' : '';
  return {
    kind: 'flag',
    text: `Let the engine replay a decode step as one CUDA graph (${modeSwitch}${attention}). In your own program: ${uncapitalize(programChange.text)}`,
    example: `${modeSwitch}${attention}  # in a program: ${programChange.example ?? ''}`,
  };
}

interface StepEvidence extends Record<string, string | number | null> {
  launch: number;
  step_ms: number | null;
  kernels: number;
  busy_ms: number;
  cores_busy: number | null;
}

function stepEvidenceText(rows: StepEvidence[]): string {
  const meanOf = (column: 'step_ms' | 'kernels' | 'busy_ms' | 'cores_busy'): number | null => {
    const values = rows.flatMap((row) => row[column] ?? []);
    return values.length === 0 ? null : mean(values);
  };
  const [stepMs, cores] = [meanOf('step_ms'), meanOf('cores_busy')];
  const timed =
    stepMs === null
      ? ''
      : `; timed repeats take ${ms(stepMs)} per step${cores === null ? '' : `, with ${formatCount(cores)} cores busy in the process`}`;
  return `${plural(meanOf('kernels') ?? 0, 'kernel')} and ${ms(meanOf('busy_ms') ?? 0)} of device work per instrumented decode step${timed}`;
}
