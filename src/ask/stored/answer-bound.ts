import { setModelCommand } from '../../advice/explain/next-steps.js';
import { leadOrder } from '../../advice/explain/sentences.js';
import type { UtilizationStage } from '../../model/documents/utilization.js';
import { headlineTime } from '../../model/headline-time.js';
import { type Figure } from '../../model/figure.js';
import { busyTime, withoutGpu } from './answer-idle.js';
import { boundKernels } from './answer-kernels.js';
import { sampledUtilization } from './answer-machine.js';
import {
  notKnown,
  capture,
  lacksStage,
  orNull,
  partFrom,
  questionStages,
  type StoredFacts,
  type StoredPart,
  known,
  type TopicAnswer,
  instanceOf,
} from './stored-facts.js';
import { formatMs, formatPercent, formatQuantity } from '../../vocabulary/format.js';
import { capitalize, withoutEnd } from '../../vocabulary/sentence.js';
import { pointLabel } from '../../vocabulary/bench.js';

interface Utilized {
  /** FLOPs and bytes of a step over its time. */
  flopsPerS: number | null;
  bytesPerS: number | null;
  kind: string;
  /** Benchmark point; null for other sessions. */
  point: string | null;
  where: string;
  mfu: Figure;
  mbu: Figure;
  bound: 'compute' | 'memory' | null;
}

async function utilizationsOf(facts: StoredFacts): Promise<Utilized[]> {
  const { session, question } = facts;
  const isAsked = (kind: string) => question.stages.length === 0 || question.stages.includes(kind);
  const { analyzeUtilization } = await import('../../facts/utilization/utilization.js');
  const found = await orNull(() => analyzeUtilization(session));
  return (found?.data.stages ?? []).filter(({ kind }) => isAsked(kind)).map(utilizedStage);
}

const perSecond = ({ value }: Figure, { value: ms }: Figure): number | null =>
  value === null || ms === null ? null : value / (ms / 1e3);

const utilizedStage = ({
  kind,
  mfu,
  mbu,
  bound,
  batch_size: batch,
  point,
  flops,
  bytes,
  time_ms: time,
}: UtilizationStage): Utilized => ({
  kind,
  flopsPerS: perSecond(flops, time),
  bytesPerS: perSecond(bytes, time),
  point,
  where: [kind, point === null ? (batch === null ? '' : `batch ${batch}`) : pointLabel(point)]
    .filter(Boolean)
    .join(' at '),
  mfu,
  mbu,
  bound,
});

const utilizedWords = (name: string, figure: Figure): string =>
  figure.value === null
    ? `${name} is not known (${withoutEnd(figure.reason.text)})`
    : `${name} ${formatPercent(figure.value)}`;

/** "MFU 27 % (272 TFLOP/s), MBU 6.2 % (0.30 TB/s)": also the rates, which need no peak. */
function reachedWords({ mfu, mbu, flopsPerS, bytesPerS }: Utilized): string {
  const rate = (value: number | null, unit: 'FLOP/s' | 'B/s') =>
    value === null ? '' : ` (${formatQuantity(value, unit)})`;
  return `${utilizedWords('MFU', mfu)}${rate(flopsPerS, 'FLOP/s')}, ${utilizedWords('MBU', mbu)}${rate(bytesPerS, 'B/s')}`;
}

/** "What is the MFU of prefill?", "how far from the roofline are we?" */
export async function utilization(facts: StoredFacts): Promise<TopicAnswer> {
  const parts = (await utilizationsOf(facts))
    .slice(0, 6)
    .map((stage) => partFrom('utilization', `${stage.where}: ${reachedWords(stage)}.`));
  const shares = rooflineShares(facts);
  const isAboutRoofline = /\broof\w*|\bhow (?:close|near|far)\b|\bpeak\b/i.test(facts.question.text);
  const [first, ...rest] = isAboutRoofline ? [...shares, ...parts] : [...parts, ...shares];
  return first
    ? known(first, rest)
    : (lacksStage(facts) ??
        notKnown('The session has no stages with known work and time.', capture.timeline));
}

/** "Is the GPU fully utilized?": busy time of a timeline or samples, then MFU and MBU. */
export async function answerGpuUtilization(facts: StoredFacts): Promise<TopicAnswer> {
  const measured = await utilization(facts);
  const used = await utilizationsOf(facts);
  const isFar =
    used.length > 0 && used.every(({ mfu, mbu }) => Math.max(mfu.value ?? 1, mbu.value ?? 1) < 0.5);
  const traced = busyTime(facts, isFar ? 'Busy, but far from its peaks: ' : undefined);
  const sampled = traced === null ? await sampledUtilization(facts) : null;
  const busy = traced ?? (sampled ? [sampled] : []);
  const [first, ...rest] = busy;
  const use = [...(measured.direct ? [measured.direct] : []), ...measured.evidence];
  if (!first) return withoutGpu(facts, use) ?? measured;
  return known(first, [...rest, ...use]);
}

/** Each stage's share of its roofline. */
function rooflineShares(facts: StoredFacts): StoredPart[] {
  return questionStages(facts).flatMap((stage) => {
    const { roofline_ms: roofline, roofs } = stage;
    const time = headlineTime(stage).value;
    if (time === null || roofline.value === null) return [];
    return [
      partFrom(
        'waterfall',
        `The roofline limit is ${formatMs(roofline.value)} of the ${formatMs(time)} that ${instanceOf(stage)} takes, ${formatPercent(roofline.value / time)}${roofs.length > 0 ? ` (${roofs.join('; ')})` : ''}.`,
      ),
    ];
  });
}

/** "Is decode memory-bound or compute-bound?": the limiting roofline, and the share of it. */
export async function boundStage(facts: StoredFacts): Promise<TopicAnswer> {
  if (/\bkernels?\b/i.test(facts.question.text)) return boundKernels(facts);
  const rank = ({ kind }: Utilized) => leadOrder.findIndex((lead) => lead === kind);
  const stages = (await utilizationsOf(facts))
    .filter(({ bound }) => bound !== null)
    .toSorted((a, b) => rank(a) - rank(b))
    .slice(0, 4);
  if (stages.length === 0) {
    const why = questionStages(facts).flatMap(({ roofline_ms: roofline }) =>
      roofline.value === null ? [roofline.reason.text] : [],
    )[0];
    if ((await facts.captures()).counters) return boundKernels(facts);
    return notKnown(
      `The limiting resource is not known: ${withoutEnd(why ?? 'the session does not record the model')}.`,
      setModelCommand(facts.session.user.name ?? facts.session.id),
    );
  }
  const { text } = facts.question;
  const wantedBound = /\bcompute[- ]?bound\b/i.test(text)
    ? /\bmemory[- ]?bound\b/i.test(text)
      ? null
      : 'compute'
    : /\b(?:memory|bandwidth)[- ]?bound\b/i.test(text)
      ? 'memory'
      : null;
  const parts = stages.map(({ where, kind, point, bound, mfu, mbu }) => {
    const used = bound === 'memory' ? mbu : mfu;
    const isFar = used.value !== null && used.value < 0.5;
    const yes = isFar ? 'Not yet: ' : 'Yes: ';
    const word = wantedBound === null || !facts.question.isYesNo ? '' : wantedBound === bound ? yes : 'No: ';
    const both =
      bound === 'memory'
        ? [utilizedWords('MBU', mbu), utilizedWords('MFU', mfu)]
        : [utilizedWords('MFU', mfu), utilizedWords('MBU', mbu)];
    const farText = isFar ? `, but far from it${largestCause(facts, kind, point)}` : '';
    return partFrom(
      'utilization',
      `${word}${where} is on the ${bound} side of its roofline (${both.join(', ')})${farText}.`,
    );
  });
  return known(parts[0]!, [...parts.slice(1), ...rooflineShares(facts)]);
}

/** ": the largest part …" of exactly this point; empty if the session has no such stage, or several. */
function largestCause({ explained }: StoredFacts, kind: string, point: string | null): string {
  const matching = explained.stages.filter(
    (stage) => stage.kind === kind && (point === null || stage.point === point),
  );
  const largest = (matching.length === 1 ? matching[0]!.bars : [])
    .filter(({ id }) => !['roofline', 'serial', 'profiler_overhead', 'unattributed'].includes(id))
    .toSorted((a, b) => b.ms - a.ms)[0];
  if (!largest) return '';
  // A profiled pass of an unsteady machine can be longer than the clean stage.
  const time = headlineTime(matching[0]!).value;
  const profiled = time !== null && largest.ms > time ? ' under the profiler' : '';
  return `: the largest part of its time is ${largest.label} (${formatMs(largest.ms)}${profiled})`;
}

/** "At which batch does decode become compute-bound?" */
export function computeBoundBatch(facts: StoredFacts): TopicAnswer | null {
  const found = facts.explained.findings.find(({ rule }) => rule === 'small_batch_memory_bound');
  if (!found) return null;
  const sql = found.evidence.find((evidence) => evidence.sql !== null)?.sql ?? null;
  const direct = { text: `${capitalize(found.title)}. ${found.cause}`, sql, from: 'findings', rows: 1 };
  return known(direct, [partFrom('findings', `Change: ${found.change.text}`)]);
}
