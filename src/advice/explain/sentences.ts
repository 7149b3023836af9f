import { jointKinds } from '../../model/documents/trace-phase.js';
import type {
  ExplainResult,
  Finding,
  MachineLoad,
  StageWaterfall,
  WaterfallBar,
} from '../../model/documents/explain.js';
import { isExposedBar, isKernelBar } from '../../model/bars.js';
import { halfInterval } from '../../model/half-interval.js';
import { explainedBars, headlineQuantiles, headlineTime, isProfiled } from '../../model/headline-time.js';
import {
  formatColumn,
  formatFactor,
  formatFigureWithInterval,
  formatMs,
  formatCount,
  formatNumber,
  formatPercent,
  formatQuantity,
  formatWithRange,
} from '../../vocabulary/format.js';
import { nothingRecorded, nothingSignificant } from '../../vocabulary/explain-words.js';
import { instanceWord, perGain } from '../../vocabulary/stages.js';
import { capitalize, withoutEnd } from '../../vocabulary/sentence.js';
import { pointLabel } from '../../vocabulary/bench.js';

/** Stages by importance: a served model spends most of its time in decode. */
export const leadOrder = [...jointKinds, 'other'] as const;

export function leadStage(stages: readonly StageWaterfall[]): StageWaterfall | null {
  for (const kind of leadOrder) {
    const stageOfKind = stages.find((stage) => stage.kind === kind);
    if (stageOfKind) return stageOfKind;
  }
  return stages[0] ?? null;
}

/**
 * Three summary sentences: the time and its limit, the largest cause, the first change and its gain.
 * @param hasJudgedRules whether any rule had data to judge; if not, the sentence about changes is left out
 */
export function summarySentences(
  stages: readonly StageWaterfall[],
  without: ExplainResult['without_waterfall'],
  findings: readonly Finding[],
  {
    whyRank = null,
    inferred = null,
    machine = null,
    hasJudgedRules = true,
  }: {
    whyRank?: string | null;
    inferred?: InferredSteps | null;
    machine?: MachineLoad | null;
    hasJudgedRules?: boolean;
  } = {},
): Pick<ExplainResult, 'preface' | 'sentences'> {
  const busy = machine?.busy ? [busySentence(machine)] : [];
  const lead = leadStage(stages);
  if (!lead) {
    const why = without[0]?.reason ?? 'the session has no stages';
    return {
      preface: [...busy, `No waterfall: ${why}.`],
      sentences: hasJudgedRules ? [changeSentence(findings, nothingRecorded)] : [],
    };
  }
  const cause = causeSentence(lead, busy.length > 0);
  return {
    preface: [
      ...busy,
      ...(inferred ? [inferredSentence(inferred)] : []),
      ...(whyRank === null ? [] : [whyRank]),
    ],
    sentences: [
      limitSentence(lead, busy.length > 0),
      ...(cause === null ? [] : [cause]),
      ...(hasJudgedRules ? [changeSentence(findings)] : []),
    ],
  };
}

function busySentence({ signs }: MachineLoad): string {
  const reached = signs.filter((sign) => sign.reached);
  const words = reached.map(({ id, value }) => {
    // Counted over the whole machine: can exceed the usable cores if this process has an affinity or a quota.
    if (id === 'other_processes') return `other processes used ${formatNumber(value, 2)} CPU cores`;
    if (id === 'steal')
      return `the hypervisor gave ${formatQuantity(value, '%')} of its CPU time to other machines`;
    return `medians of launches differ by ${formatPercent(value)}`;
  });
  const how = reached.every(({ id }) => id === 'launch_spread') ? 'unsteady' : 'busy';
  return `This machine was ${how} (${words.join('; ')}): times are upper bounds; causes sensitive to noise are not reported.`;
}

/** Steps inferred from the sequence of kernels, and the share of kernels that repeat. */
export interface InferredSteps {
  n: number;
  confidence: number;
}

function inferredSentence({ n, confidence }: InferredSteps): string {
  return `Steps are not marked: ${formatCount(n)} steps were inferred from the repeating kernel sequence (${formatPercent(confidence)} of the kernels between the first and the last belong to a step).`;
}

function limitSentence(stage: StageWaterfall, busy: boolean): string {
  const { measured_ms: measured, roofline_ms: roofline, instances, point } = stage;
  const headline = headlineTime(stage);
  if (measured.value === null || headline.value === null)
    return `The time of ${instanceWord(stage.kind)} was not measured.`;
  const over = headline.ci95_over;
  const n = over
    ? `${over.n} ${over.unit}`
    : String(headline === measured ? instances : (headline.n ?? instances));
  const { median, p10 } = headlineQuantiles(stage);
  const skewed =
    median !== null && (busy || Math.abs(median - headline.value) > 0.15 * headline.value)
      ? `, median ${formatMs(median)}${busy && p10 !== null ? `, fastest tenth ${formatMs(p10)}` : ''}`
      : '';
  const where = point === null ? '' : ` at ${pointLabel(point)}`;
  const subject = capitalize(instanceWord(stage.kind, stage.from_schedule));
  const profiled = isProfiled(stage) ? ' under the profiler' : '';
  const profiledToo = isLengthenedByProfiler(stage) ? `, ${formatMs(measured.value)} under the profiler` : '';
  const time = `${subject} takes ${formatFigureWithInterval(headline)}${profiled}${where} (n = ${n}${skewed}${profiledToo})`;
  if (roofline.value === null) {
    return `${time}; the roofline limit is not known: ${roofline.reason.text}.`;
  }
  const times = headline.value / roofline.value;
  const how = times >= 1.05 ? ` (${formatFactor(times)} faster)` : '';
  return `${time}; the roofline limit is ${formatMs(roofline.value)}${how}.`;
}

/**
 * The largest bar above the roofline, and up to two further large ones.
 * @param busy only use bars that another process cannot lengthen: GPU kernels and copies; null if there are none
 */
function causeSentence(stage: StageWaterfall, busy: boolean): string | null {
  const { bars, ms: explained } = explainedBars(stage.bars);
  const aboveRoofline = bars
    .filter(({ id, ms }) => id !== 'roofline' && ms > 0)
    .filter(({ id }) => !busy || (stage.source === 'trace' && isDeviceBar(id)))
    .toSorted((a, b) => b.ms - a.ms);
  const [first, ...rest] = aboveRoofline;
  if (busy && !first) return null;
  if (!first || explained <= 0) return 'No time is above the roofline.';
  const next = rest.filter(({ ms }) => ms >= 0.1 * explained).slice(0, 2);
  const furtherCauses =
    next.length > 0 ? `; then ${next.map((bar) => barText(bar, stage)).join(' and ')}` : '';
  return `The largest cause is ${barText(first, stage)}${furtherCauses}.`;
}

/** Bars of work on the device. */
const isDeviceBar = (id: string): boolean => isKernelBar(id) || isExposedBar(id);

/** Whether the profiler changed the time so much that both times are shown. */
function isLengthenedByProfiler({ clean_ms, measured_ms }: StageWaterfall): boolean {
  if (clean_ms.value === null || measured_ms.value === null) return false;
  return Math.abs(measured_ms.value - clean_ms.value) >= 0.05 * measured_ms.value;
}

/** A bar with the digits that it has in the waterfall. */
function barText({ label, ms, share }: WaterfallBar, stage: StageWaterfall): string {
  const headline = headlineTime(stage);
  const { texts, unit } = formatColumn([ms], 'ms', headline.value ?? ms, halfInterval(headline));
  return `${label}: ${texts[0]} ${unit} (${formatPercent(share)})`;
}

/** @param withoutTimes what to say without a finding, if there are no times: then findings without a gain may come first */
function changeSentence(findings: readonly Finding[], withoutTimes?: string): string {
  const first =
    findings.find(
      ({ severity, hidden_by }) => (withoutTimes !== undefined || severity !== 'info') && hidden_by === null,
    ) ?? null;
  if (!first) return withoutTimes ?? nothingSignificant;
  const expected = expectedWords(first);
  return `${withoutEnd(first.title)}. Change first: ${withoutEnd(first.change.text)}${expected}.`;
}

/** ". Expected gain: 6.2 ms per decode step (5.1 ms to 6.3 ms)"; per token where no step gets shorter; '' without a gain. */
export function expectedWords({ gain, stage }: Pick<Finding, 'gain' | 'stage'>): string {
  if (!gain || gain.expected_ms <= 0) return '';
  if (gain.per === 'token') {
    const before = gain.after_ms + gain.expected_ms;
    return `. Expected: ${formatMs(gain.after_ms)} per token instead of ${formatMs(before)}, in steps of the same length`;
  }
  const { value, range } = formatWithRange(gain.expected_ms, gain.low_ms, gain.high_ms, 'ms');
  return `. Expected gain: ${value} ${perGain(gain.per, stage)}${range === null ? '' : ` (${range})`}`;
}
