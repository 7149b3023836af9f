import type {
  Diagnosis,
  LatencyResult,
  ProfileResult,
  StageResult,
  WithheldPart,
} from '../model/documents/profile.js';
import { figure, isShare } from '../model/figure.js';
import { withheldReasons } from '../model/withheld.js';

/** What the diagnosis reads: parts of the result that are there already, and one fact of the machine. */
export interface DiagnosisInput extends Pick<ProfileResult, 'workload' | 'latency' | 'stages' | 'memory'> {
  usableCores: number | null;
  /** Another process can have taken the time that some observations rest on. */
  busy: boolean;
}

/** A part of a stage below this share is not worth a line. */
const significantShare = 0.05;
/** From this MFU on, prefill is near what its kernels can reach. */
const nearPeak = 0.7;
/** Share of a memory-bound step's bytes that matrix products must read before weights are what it waits for. */
const weightsDominate = 0.5;
/** Share of the matrix products' time that the vocabulary must take. */
const largeVocabulary = 0.2;
/** Steps below which quarters are too few to compare; growth below this share is not said. */
const leastSteps = 16;
const leastGrowth = 0.05;
/** Standard errors that the growth must exceed. */
const clearErrors = 3;

interface Observation extends Diagnosis {
  /** ms of one repeat that it concerns: only for the order. 0: not time. */
  atStakeMs: number;
}

/** "76 %", "8.8 %". */
export const percent = (share: number): string =>
  `${Math.abs(share) >= 0.0995 ? Math.round(100 * share) : (100 * share).toFixed(1)} %`.replace('-', '−');

const ms = (value: number): string => `${Number(value.toPrecision(3))} ms`;
const mib = (bytes: number): string => `${Number((bytes / 2 ** 20).toPrecision(3))} MiB`;

/** What a core that another process took can look like. */
const noisy = new Set([
  'prefill_far_from_peak',
  'context_growth',
  'copies',
  'runtime_call',
  'runtime_dispatch',
  'vocabulary',
  'idle_cores',
]);

/**
 * Every observation that passes its threshold, the one with the most time at stake first: what is said, and what is withheld.
 * @param explained whether the profiled pass explains a stage well enough to build on its parts
 */
export function observations(
  input: DiagnosisInput,
  explained: (stage: StageResult) => boolean,
): { said: Diagnosis[]; withheld: WithheldPart[] } {
  const found: (Observation | null)[] = [contextGrowth(input.latency)];
  const unexplained = new Set<Observation | null>();
  for (const stage of input.stages) {
    if (stage.kind === 'sampling' || !stage.duration_ms.value) continue;
    const instances = stage.kind === 'decode' ? Math.max(0, (input.workload.output_len ?? 2) - 1) : 1;
    const of: StageFacts = {
      stage,
      kind: stage.kind,
      measuredMs: stage.duration_ms.value,
      perRepeatMs: stage.duration_ms.value * instances,
      name: stage.kind === 'decode' ? 'a decode step' : 'prefill',
    };
    found.push(weightsPerStep(of, input), prefillPeak(of));
    if (stage.bars.length === 0) continue;
    const parts = [copies(of, input), runtimeCall(of), runtimeDispatch(of), vocabulary(of, input)];
    found.push(...parts);
    if (!explained(stage)) for (const part of parts) unexplained.add(part);
  }
  found.push(idleCores(input), memoryResidual(input));
  const reasonOf = (one: Observation) => {
    if (unexplained.has(one)) return withheldReasons.passes_differ;
    if (one.share.value !== null && !isShare(one.share.value)) return withheldReasons.not_a_share;
    return input.busy && noisy.has(one.id) ? withheldReasons.machine_busy : null;
  };
  const said: Diagnosis[] = [];
  const withheld: WithheldPart[] = [];
  for (const one of found.filter((each) => each !== null).toSorted((x, y) => y.atStakeMs - x.atStakeMs)) {
    const { atStakeMs: _, ...shown } = one;
    const reason = reasonOf(one);
    if (reason === null) said.push(shown);
    else withheld.push({ kind: 'observation', id: one.id, stage: one.stage, reason });
  }
  return { said, withheld };
}

interface StageFacts {
  stage: StageResult;
  kind: 'prefill' | 'decode';
  measuredMs: number;
  perRepeatMs: number;
  name: string;
}

const barMs = ({ bars }: StageResult, id: string): number => bars.find((bar) => bar.id === id)?.ms ?? 0;

function timed(
  { kind, perRepeatMs }: StageFacts,
  share: number,
  source: string,
  rest: Pick<Diagnosis, 'id' | 'cost' | 'text' | 'decision'>,
): Observation {
  return { ...rest, stage: kind, share: figure(share, 'ratio', source), atStakeMs: share * perRepeatMs };
}

function weightsPerStep(of: StageFacts, { workload }: DiagnosisInput): Observation | null {
  const { stage, kind, measuredMs } = of;
  if (kind !== 'decode' || stage.bound !== 'memory') return null;
  const gemmBytes = stage.breakdown?.by_class.find((row) => row.class === 'gemm')?.necessary_bytes ?? null;
  const { bytes, roofline_ms: roofline } = stage;
  const batch = workload.batch_size;
  if (gemmBytes === null || batch === null || !bytes.value || roofline.value === null) return null;
  const share = roofline.value / measuredMs;
  if (gemmBytes / bytes.value < weightsDominate || share < significantShare) return null;
  return timed(of, share, 'roofline_ms / duration_ms', {
    id: 'weights_per_step',
    cost: 'kernels',
    text: `A decode step is memory-bound: ${percent(share)} of it is the least time for its bytes, ${percent(gemmBytes / bytes.value)} of them moved by matrix products, which read the weights once a step for ${batch} sequence${batch === 1 ? '' : 's'}.`,
    decision: 'batch and weight dtype decide: more sequences share one read, smaller weights shorten it',
  });
}

function prefillPeak(of: StageFacts): Observation | null {
  const { stage, kind, measuredMs } = of;
  const { mfu, roofline_ms: roofline } = stage;
  if (kind !== 'prefill' || stage.bound !== 'compute' || !mfu.value || roofline.value === null) return null;
  const share = roofline.value / measuredMs;
  if (mfu.value > 1) return null; // An error of the report says so.
  const near = mfu.value >= nearPeak;
  return timed(
    of,
    near ? share : 1 - share,
    near ? 'roofline_ms / duration_ms' : '1 − roofline_ms / duration_ms',
    {
      id: near ? 'prefill_near_peak' : 'prefill_far_from_peak',
      cost: 'kernels',
      text: `Prefill is compute-bound at ${percent(mfu.value)} of the measured peak${near ? ': its kernels have little left to gain' : `: ${ms(measuredMs - roofline.value)} of ${ms(measuredMs)} lie over the roofline`}.`,
      decision: near
        ? 'prompt length, model size and the dtype computed in decide, not other kernels'
        : 'kernels and runtime decide before the model does: its FLOPs alone do not take this long',
    },
  );
}

/** Mean, and its standard error. */
function meanAndError(values: readonly number[]): [mean: number, error: number] {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
  return [mean, Math.sqrt(variance / values.length)];
}

/** First against last quarter of the decode steps, each step the mean over all timed repeats. */
function contextGrowth({ decode_step_by_index_ms: all }: LatencyResult): Observation | null {
  const steps = all.filter((step) => Number.isFinite(step));
  if (steps.length < leastSteps) return null;
  const quarter = Math.floor(steps.length / 4);
  const [first, firstError] = meanAndError(steps.slice(0, quarter));
  const [last, lastError] = meanAndError(steps.slice(-quarter));
  const growth = last - first;
  if (growth < leastGrowth * first || growth <= clearErrors * Math.hypot(firstError, lastError)) return null;
  return {
    id: 'context_growth',
    stage: 'decode',
    cost: null,
    share: figure(growth / last, 'ratio', 'growth / last quarter of decode_step_by_index_ms'),
    text: `A decode step takes ${ms(first)} in the first quarter of the output and ${ms(last)} in the last: ${ms(growth)} more with ${steps.length - quarter} tokens more of context.`,
    decision: 'context length decides: every token in the KV cache is read again by each later step',
    atStakeMs: steps.reduce((sum, step) => sum + Math.max(0, step - first), 0),
  };
}

function copies(of: StageFacts, { workload }: DiagnosisInput): Observation | null {
  const { stage, name, measuredMs } = of;
  const copyMs = barMs(stage, 'nonessential.copy');
  if (copyMs < significantShare * measuredMs) return null;
  const operators = (stage.breakdown?.top_operators ?? []).filter((operator) => operator.class === 'copy');
  const concatMs = operators
    .filter(({ op_type }) => op_type === 'Concat')
    .reduce((sum, operator) => sum + operator.ms, 0);
  // Growing by copying is a Concat of old keys and values with new ones; other copies are the export's own.
  const grows = workload.engine.options['kv_cache'] === 'grows' && concatMs >= copyMs / 2;
  return timed(of, copyMs / measuredMs, 'bar nonessential.copy / duration_ms', {
    id: grows ? 'kv_cache_copied' : 'copies',
    cost: 'kernels',
    text:
      `Copies take ${percent(copyMs / measuredMs)} of ${name} (${ms(copyMs)})` +
      (grows
        ? `, ${ms(concatMs)} of them Concat: this model's KV cache grows by copying.`
        : operators[0]
          ? `, the largest ${operators[0].op_type} (${ms(operators[0].ms)}).`
          : '.'),
    decision: grows
      ? 'the export decides: a KV cache written in place is not copied in every step'
      : 'the export decides: fused operators need no copies between them',
  });
}

function runtimeCall(of: StageFacts): Observation | null {
  const { stage, name, measuredMs } = of;
  const edgesMs = barMs(stage, 'host.runtime_call');
  if (edgesMs < significantShare * measuredMs) return null;
  return timed(of, edgesMs / measuredMs, 'bar host.runtime_call / duration_ms', {
    id: 'runtime_call',
    cost: 'scheduling',
    text: `Before its first and after its last operator a call takes ${percent(edgesMs / measuredMs)} of ${name} (${ms(edgesMs)}): inputs and outputs (KV cache tensors, logits) are bound anew in every call.`,
    decision: 'the runtime interface decides: tensors that stay bound need not be handed over in each call',
  });
}

function runtimeDispatch(of: StageFacts): Observation | null {
  const { stage, name, measuredMs } = of;
  const gapsMs = barMs(stage, 'host.runtime_dispatch');
  if (gapsMs < significantShare * measuredMs) return null;
  const operators = stage.breakdown?.by_class.reduce((sum, row) => sum + row.calls, 0) ?? 0;
  return timed(of, gapsMs / measuredMs, 'bar host.runtime_dispatch / duration_ms', {
    id: 'runtime_dispatch',
    cost: 'scheduling',
    text: `Between its ${Math.round(operators)} operators the runtime takes ${percent(gapsMs / measuredMs)} of ${name} (${ms(gapsMs)}).`,
    decision: 'the number of operators decides: a graph with fused operators has fewer to start',
  });
}

function vocabulary(of: StageFacts, { workload }: DiagnosisInput): Observation | null {
  const { stage, kind } = of;
  const parts = stage.breakdown;
  const gemm = parts?.by_class.find((row) => row.class === 'gemm');
  if (kind !== 'decode' || !parts || !gemm) return null;
  const headMs = parts.top_operators
    .filter(
      (operator) => operator.class === 'gemm' && operator.layer === null && /lm_head/.test(operator.name),
    )
    .reduce((sum, operator) => sum + operator.ms, 0);
  if (headMs < largeVocabulary * gemm.ms || headMs < significantShare * parts.stage_ms) return null;
  const size = workload.model?.config['vocab_size'];
  return timed(of, headMs / parts.stage_ms, 'lm_head / stage_ms, profiled', {
    id: 'vocabulary',
    cost: 'kernels',
    text: `The lm_head is ${percent(headMs / gemm.ms)} of the matrix products of a decode step (${ms(headMs)}, profiled)${typeof size === 'number' ? `: ${size} vocabulary rows are multiplied for every token` : ''}.`,
    decision: 'vocabulary size decides: a smaller one, or a smaller dtype for the lm_head, shortens it',
  });
}

/** Only where compute bounds prefill: more threads need not help where memory does. */
function idleCores({ workload: { threads }, stages, usableCores }: DiagnosisInput): Observation | null {
  const prefill = stages.find(({ kind }) => kind === 'prefill');
  if (threads === null || usableCores === null || threads >= usableCores || prefill?.bound !== 'compute')
    return null;
  return {
    id: 'idle_cores',
    stage: 'prefill',
    cost: null,
    share: figure(1 - threads / usableCores, 'ratio', '1 − threads / usable cores'),
    text: `Prefill is compute-bound and ${threads} of ${usableCores} usable cores compute${threads === usableCores - 1 ? '; one is left to the system so that times are steady' : ''}.`,
    decision: `--threads decides: try ${usableCores}, and compare the spread as well as the time`,
    atStakeMs: 0,
  };
}

function memoryResidual({ memory }: DiagnosisInput): Observation | null {
  const bytesOf = (component: string) => memory?.breakdown.find((row) => row.component === component)?.bytes;
  const residual = bytesOf('residual');
  const weights = bytesOf('weights');
  const peak = memory?.peak_bytes.value;
  if (residual === undefined || !weights || !peak || residual <= weights) return null;
  return {
    id: 'memory_not_itemised',
    stage: null,
    cost: 'allocation',
    share: figure(residual / peak, 'ratio', 'residual / peak memory'),
    text: `${mib(residual)} of the peak of ${mib(peak)} are not itemised: more than the weights (${mib(weights)}).`,
    decision: 'the runtime decides more than the model: its arena and working copies, not the parameters',
    atStakeMs: 0,
  };
}
