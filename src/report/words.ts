import type { MemoryResult, ProfileResult, StageResult } from '../model/documents/profile.js';
import type { Figure } from '../model/figure.js';
import type { Workload } from '../model/manifest.js';
import {
  formatBytes,
  formatFigure,
  formatFigureWithInterval,
  formatFigureWithSpread,
  formatNumber,
  formatQuantity,
  formatUtilization,
  isAccountingFault,
  nbsp,
  noValue,
} from './format.js';
import { componentNames } from './names.js';

export const plural = (count: number, one: string): string =>
  `${count}${nbsp}${one}${count === 1 ? '' : 's'}`;

/** "llama-24m (random weights, float32)". */
export function modelWords(workload: Workload): string {
  const { model } = workload;
  if (!model) return 'unknown model';
  const { dtype, quantization } = model;
  const traits = [
    model.weights === 'unknown' ? null : `${model.weights} weights`,
    // "MatMulNBits int4, block 32" says the dtype already.
    quantization?.includes(dtype) ? null : dtype,
    quantization,
  ].filter((trait) => trait !== null);
  return `${model.name} (${traits.join(', ')})`;
}

/** "onnxruntime 1.30.0 on cpu, 1 thread". */
export function engineWords({ engine, device, threads }: Workload): string {
  const version = engine.version ? `${nbsp}${engine.version}` : '';
  const where = device === 'cpu' ? 'CPU' : device;
  return `${engine.name}${version}${nbsp}${where}${threads === null ? '' : `, ${plural(threads, 'thread')}`}`;
}

/** "batch 1, 128 in + 32 out tokens"; "" where a session does not say (another tool's capture, a sweep). */
export function shapeWords({ batch_size, input_len, output_len }: Workload): string {
  const batch = batch_size === null ? null : `batch${nbsp}${batch_size}`;
  const tokens =
    input_len === null && output_len === null
      ? null
      : `${input_len ?? noValue}${nbsp}in${nbsp}+${nbsp}${output_len ?? noValue}${nbsp}out${nbsp}tokens`;
  return [batch, tokens].filter((part) => part !== null).join(', ');
}

/** What ran, on what, in which shape: a session's title unless it was given another. */
export function identityWords(workload: Workload): string {
  return [modelWords(workload), engineWords(workload), shapeWords(workload)].filter(Boolean).join(' · ');
}

export function boundWords(stage: StageResult): string {
  return stage.bound === null ? 'bound unknown' : `${stage.bound}-bound`;
}

/** "per step" for a decode stage, nothing for the others. */
export const stageUnit = (stage: StageResult): string => (stage.kind === 'decode' ? '/step' : '');

export function stageNamed(result: ProfileResult, kind: StageResult['kind']): StageResult | undefined {
  return result.stages.find((stage) => stage.kind === kind);
}

/** With a capital and a full stop. */
export const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

function runSentence({ workload, latency }: ProfileResult): string {
  const batch = workload.batch_size ?? 1;
  const over = batch > 1 ? ` over the batch of ${batch}` : '';
  const first = `The first token comes after ${formatFigureWithInterval(latency.ttft_ms)}`;
  const next =
    latency.tpot_ms.value === null
      ? ''
      : `, each further one after another ${formatFigureWithInterval(latency.tpot_ms)} (${formatFigure(latency.decode_tokens_per_s)}${over})`;
  const tokens =
    workload.output_len === null
      ? 'the whole'
      : `all ${plural(workload.output_len, 'token')}${batch > 1 ? ' of each sequence' : ''}`;
  const whole =
    latency.e2e_ms.value === null
      ? 'the whole was not timed'
      : `${tokens} take ${formatFigureWithSpread(latency.e2e_ms)}`;
  return `${first}${next}; ${whole}.`;
}

/** Peak that a stage's MFU was taken of, FLOP/s: FLOPs / (time × MFU). */
function peakOf({ flops, duration_ms, mfu }: StageResult): number | null {
  if (flops.value === null || !duration_ms.value || !mfu.value) return null;
  return flops.value / (duration_ms.value / 1e3) / mfu.value;
}

/** " of 75.2 GFLOP/s float32": the compute roof an MFU is a share of, by the name it has in the roofline. */
function peakWords(stage: StageResult, { roofline }: ProfileResult): string {
  const peak = peakOf(stage);
  if (peak === null) return '';
  const named = roofline?.compute.find((roof) => Math.abs(roof.flops_per_s / peak - 1) < 1e-3);
  return ` of ${formatQuantity(peak, 'FLOP/s')}${named ? `${nbsp}${named.dtype}` : ''}`;
}

/** The utilisation that counts for a stage: of compute when compute bounds it, else of bandwidth. */
function utilizationWords(stage: StageResult, result: ProfileResult): string {
  const fault = (figure: Figure): string => (isAccountingFault(figure) ? ', an accounting fault' : '');
  if (stage.bound === 'compute') {
    return `MFU${nbsp}${formatFigure(stage.mfu)}${peakWords(stage, result)}${fault(stage.mfu)}`;
  }
  const level = stage.bandwidth_level ? `${nbsp}${stage.bandwidth_level}` : '';
  const roof =
    stage.bandwidth_bytes_per_s.value === null
      ? ''
      : ` of ${formatFigure(stage.bandwidth_bytes_per_s)}${level}`;
  return `MBU${nbsp}${formatFigure(stage.mbu)}${roof}${fault(stage.mbu)}`;
}

function boundClause(stage: StageResult, result: ProfileResult): string {
  const name = stage.kind === 'decode' ? 'a decode step' : stage.kind;
  const measured = formatFigure(stage.duration_ms);
  if (stage.bound === null) return `what bounds ${name} (${measured}) is unknown: ${whyUnknown(stage)}`;
  const { duration_ms: duration, roofline_ms: roofline } = stage;
  const distance =
    duration.value === null || !roofline.value
      ? ''
      : `, ${formatNumber(duration.value / roofline.value, 2)}${nbsp}times the ${formatFigure(roofline)} that this machine's roofline allows`;
  return `${name} is ${boundWords(stage)}: ${measured}${distance} (${utilizationWords(stage, result)})`;
}

function whyUnknown(stage: StageResult): string {
  const first = [stage.roofline_ms, stage.mfu, stage.mbu].find((figure) => figure.value === null);
  return first?.value === null ? first.reason.text : 'no model arithmetic';
}

function boundSentence(result: ProfileResult): string {
  const clauses = result.stages
    .filter((stage) => stage.kind !== 'sampling')
    .map((stage) => boundClause(stage, result));
  if (clauses.length === 0) return 'No stage was recorded, so nothing can be said about what bounds it.';
  return clauses.map(sentence).join(' ');
}

function memorySentence({ memory }: ProfileResult): string {
  if (!memory) return 'Memory was not sampled in this session.';
  if (memory.peak_bytes.value === null)
    return `The memory peak is unknown: ${memory.peak_bytes.reason.text}.`;
  const parts = memoryParts(memory).map(
    (part) => `${componentNames[part.component]} ${formatBytes(part.bytes)}`,
  );
  const where = parts.length > 0 ? `: ${parts.join(', ')}` : '';
  return `Memory peaks at ${formatFigure(memory.peak_bytes)}${where}.`;
}

/** Parts of the peak, the largest first, what is not itemised last. */
export function memoryParts({ breakdown }: MemoryResult): MemoryResult['breakdown'] {
  const rest = (part: MemoryResult['breakdown'][number]): number => (part.component === 'residual' ? 1 : 0);
  return breakdown.toSorted((a, b) => rest(a) - rest(b) || b.bytes - a.bytes);
}

/** Three sentences: what was run and how fast; what bounds it and how far from the roofline; where memory goes. */
export function headlineSentences(result: ProfileResult): [run: string, bounds: string, memory: string] {
  return [runSentence(result), boundSentence(result), memorySentence(result)];
}

/** One line a stage. */
export function stageSentence(stage: StageResult): string {
  const rate = stage.tokens_per_s.value === null ? '' : `, ${formatFigure(stage.tokens_per_s)}`;
  const time = `${formatFigureWithSpread(stage.duration_ms)}${rate}`;
  if (stage.kind === 'sampling') return `sampling: ${time}`;
  return `${stage.kind}: ${time}; MFU${nbsp}${formatUtilization(stage.mfu)}, MBU${nbsp}${formatUtilization(stage.mbu)}, ${boundWords(stage)}`;
}

/** Reasons of the missing figures among `named`, one line a reason: "MFU, MBU: no roofline was measured". */
export function missingReasons(named: [name: string, figure: Figure][]): string[] {
  const names = new Map<string, string[]>();
  for (const [name, figure] of named) {
    if (figure.value !== null) continue;
    names.set(figure.reason.text, [...(names.get(figure.reason.text) ?? []), name]);
  }
  return [...names].map(([reason, of]) => {
    const named = of.length > 4 ? `${of.slice(0, 3).join(', ')} and ${of.length - 3} more` : of.join(', ');
    return `${named}: ${reason}`;
  });
}
