import type { Document, Issue } from '../model/document.js';
import type { ProfileResult, StageResult, Suggestion } from '../model/documents/profile.js';
import type { Figure } from '../model/figure.js';
import type { Workload } from '../model/manifest.js';
import {
  formatBytes,
  formatFigure,
  formatFigureWithInterval,
  formatFigureWithSpread,
  formatMs,
  formatUtilization,
  isAccountingFault,
  nbsp,
  noValue,
} from './format.js';
import { componentNames } from './names.js';

const plural = (count: number, one: string): string => `${count}${nbsp}${one}${count === 1 ? '' : 's'}`;

/** "llama-24m (random weights, float32)". */
export function modelWords(workload: Workload): string {
  const { model } = workload;
  if (!model) return 'unknown model';
  const traits = [
    model.weights === 'unknown' ? null : `${model.weights} weights`,
    model.dtype,
    model.quantization === model.dtype ? null : model.quantization,
  ].filter((trait) => trait !== null);
  return `${model.name} (${traits.join(', ')})`;
}

/** "onnxruntime 1.30.0 on cpu, 1 thread". */
export function engineWords({ engine, device, threads }: Workload): string {
  const version = engine.version ? `${nbsp}${engine.version}` : '';
  const where = device === 'cpu' ? 'CPU' : device;
  return `${engine.name}${version}${nbsp}${where}${threads === null ? '' : `, ${plural(threads, 'thread')}`}`;
}

/** "batch 1, 128 → 32 tokens". */
export function shapeWords({ batch_size, input_len, output_len }: Workload): string {
  const batch = batch_size === null ? 'batch unknown' : `batch${nbsp}${batch_size}`;
  return `${batch}, ${input_len ?? noValue}${nbsp}→${nbsp}${output_len ?? noValue}${nbsp}tokens`;
}

export function boundWords(stage: StageResult): string {
  return stage.bound === null ? 'bound unknown' : `${stage.bound}-bound`;
}

/** "per step" for a decode stage, nothing for the others. */
export const stageUnit = (stage: StageResult): string => (stage.kind === 'decode' ? '/step' : '');

export function stageNamed(result: ProfileResult, kind: StageResult['kind']): StageResult | undefined {
  return result.stages.find((stage) => stage.kind === kind);
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

function runSentence({ workload, latency }: ProfileResult): string {
  const tokens = workload.output_len === null ? '' : ` for ${plural(workload.output_len, 'token')}`;
  const first = `the first token comes after ${formatFigureWithInterval(latency.ttft_ms)}`;
  const next =
    latency.tpot_ms.value === null
      ? ''
      : `, each further one takes ${formatFigureWithInterval(latency.tpot_ms)} (${formatFigure(latency.decode_tokens_per_s)})`;
  const whole =
    latency.e2e_ms.value === null
      ? 'the whole was not timed'
      : `the whole takes ${formatFigureWithSpread(latency.e2e_ms)}${tokens}`;
  return `${modelWords(workload)} on ${engineWords(workload)}, ${shapeWords(workload)}: ${first}${next}; ${whole}.`;
}

/** The utilisation that counts for a stage: of compute when compute bounds it, else of bandwidth. */
function utilizationWords(stage: StageResult): string {
  if (stage.bound === 'compute') return `MFU${nbsp}${formatUtilization(stage.mfu)}`;
  const level = stage.bandwidth_level ? `${nbsp}${stage.bandwidth_level}` : '';
  const roof =
    stage.bandwidth_bytes_per_s.value === null
      ? ''
      : ` of ${formatFigure(stage.bandwidth_bytes_per_s)}${level}`;
  return `MBU${nbsp}${formatUtilization(stage.mbu)}${roof}`;
}

function boundClause(stage: StageResult): string {
  const name = stage.kind === 'decode' ? 'a decode step' : stage.kind;
  const measured = formatFigure(stage.duration_ms);
  if (stage.bound === null) return `what bounds ${name} (${measured}) is unknown: ${whyUnknown(stage)}`;
  const allowed =
    stage.roofline_ms.value === null
      ? ''
      : ` where this machine's roofline allows ${formatFigure(stage.roofline_ms)}`;
  return `${name} is ${boundWords(stage)}: ${measured}${allowed} (${utilizationWords(stage)})`;
}

function whyUnknown(stage: StageResult): string {
  const first = [stage.roofline_ms, stage.mfu, stage.mbu].find((figure) => figure.value === null);
  return first?.value === null ? first.reason.text : 'no model arithmetic';
}

function boundSentence(result: ProfileResult): string {
  const clauses = result.stages.filter((stage) => stage.kind !== 'sampling').map(boundClause);
  if (clauses.length === 0) return 'No stage was recorded, so nothing can be said about what bounds it.';
  return clauses.map(sentence).join(' ');
}

function memorySentence({ memory }: ProfileResult): string {
  if (!memory) return 'Memory was not sampled in this session.';
  if (memory.peak_bytes.value === null)
    return `The memory peak is unknown: ${memory.peak_bytes.reason.text}.`;
  const parts = memory.breakdown
    .toSorted((a, b) => b.bytes - a.bytes)
    .map((part) => `${componentNames[part.component]} ${formatBytes(part.bytes)}`);
  const where = parts.length > 0 ? `: ${parts.join(', ')}` : '';
  return `Memory peaks at ${formatFigure(memory.peak_bytes)}${where}.`;
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

/** "int4 weights → 1.30 ms per token expected (--dtype int4)". */
export function suggestionSentence(suggestion: Suggestion): string {
  const per = suggestion.per === 'token' ? ' per token' : suggestion.stage === 'decode' ? ' per step' : '';
  const flag = suggestion.flag ? ` (try ${suggestion.flag.replaceAll(' ', nbsp)})` : '';
  return `${suggestion.change} → ${formatMs(suggestion.expected_ms)}${per} expected${flag}`;
}

const severities: Issue['severity'][] = ['error', 'warning', 'info'];

/**
 * What the reader must know before trusting the figures: the document's issues, an unfinished session, and every
 * MFU or MBU over 100 %. Gravest first.
 */
export function notices({ data, issues }: Document<ProfileResult>): Issue[] {
  const found: Issue[] = [];
  if (data.session.status !== 'complete') {
    found.push({
      code: `session_${data.session.status}`,
      severity: 'error',
      text: `The session was ${data.session.status}: the figures cover only what had been recorded by then.`,
    });
  }
  for (const stage of data.stages) {
    const utilizations: [string, Figure][] = [
      ['MFU', stage.mfu],
      ['MBU', stage.mbu],
    ];
    for (const [name, utilization] of utilizations) {
      if (!isAccountingFault(utilization)) continue;
      found.push({
        code: 'accounting_fault',
        severity: 'error',
        text:
          `${name} of ${stage.kind} is ${formatFigure(utilization)}, which no hardware can reach: the work is counted ` +
          'too high or the roof was measured too low. Do not use this figure before that is cleared up.',
      });
    }
  }
  return [...found, ...issues].toSorted(
    (a, b) => severities.indexOf(a.severity) - severities.indexOf(b.severity),
  );
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
