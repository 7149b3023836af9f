import type { ExplainResult, Finding, StageWaterfall, WaterfallBar } from '../../model/documents/explain.js';
import { isBusy, type MachineLoad } from '../machine-load.js';
import type { AwaitedRank } from '../waterfall/ranks.js';
import { instanceWord, msText, percentText } from './words.js';

/** The stage that is told first: what a served model does all day. */
export const leadOrder = ['decode', 'mixed', 'prefill', 'outside', 'other'] as const;

export function leadStage(stages: readonly StageWaterfall[]): StageWaterfall | null {
  for (const kind of leadOrder) {
    const own = stages.find((stage) => stage.kind === kind);
    if (own) return own;
  }
  return stages[0] ?? null;
}

/** Three sentences for someone in a hurry: the time and its limit, the largest cause, the first change and its gain. */
export function sentences(
  stages: readonly StageWaterfall[],
  without: ExplainResult['without_waterfall'],
  found: readonly Finding[],
  { awaited = null, load = null }: { awaited?: AwaitedRank | null; load?: MachineLoad | null } = {},
): string[] {
  const busy = load !== null && isBusy(load) ? [busySentence(load)] : [];
  const lead = leadStage(stages);
  if (!lead) {
    const why = without[0]?.reason ?? 'the session has no stages';
    return [...busy, `There is no waterfall: ${why}.`, changeSentence(found, true)];
  }
  const cause = causeSentence(lead, busy.length > 0);
  return [...busy, limitSentence(lead, awaited), ...(cause === null ? [] : [cause]), changeSentence(found)];
}

function busySentence({ others_cores, cores }: MachineLoad): string {
  return `This machine was busy (other processes used ${others_cores.toFixed(1)} of ${cores} cores): times are upper bounds; causes that noise can produce are withheld.`;
}

function limitSentence(stage: StageWaterfall, awaited: AwaitedRank | null): string {
  const sentence = limitOf(stage);
  if (!awaited) return sentence;
  const { rank, device, kind, waiting_ms } = awaited;
  const whose = `rank ${rank ?? '–'}${device === null || device === rank ? '' : ` on device ${device}`}`;
  const where = kind === 'outside' ? 'the capture' : instanceWord(kind);
  return `Shown is ${whose}, for which another waits ${msText(waiting_ms)} of ${where} in its collectives: ${sentence.charAt(0).toLowerCase()}${sentence.slice(1)}`;
}

function limitOf(stage: StageWaterfall): string {
  const { measured_ms: measured, roofline_ms: roofline, instances, point } = stage;
  if (measured.value === null) return `The time of ${instanceWord(stage.kind)} was not measured.`;
  const spread = measured.ci95 ? `, ± ${msText((measured.ci95[1] - measured.ci95[0]) / 2)}` : '';
  const skewed =
    stage.median_ms !== null && Math.abs(stage.median_ms - measured.value) > 0.15 * measured.value
      ? `, median ${msText(stage.median_ms)}`
      : '';
  const where = point === null ? '' : ` at ${point}`;
  const subject = stage.kind === 'outside' ? 'The whole capture' : capital(instanceWord(stage.kind));
  const clean = addedByProfiler(stage);
  const time =
    clean === null
      ? `${subject} takes ${msText(measured.value)}${where} (n = ${instances}${spread}${skewed})`
      : `${subject} takes ${msText(clean)}, under the profiler ${msText(measured.value)} (n = ${instances}${spread}${skewed})`;
  if (roofline.value === null) {
    return `${time}; what the hardware allows is not known: ${roofline.reason.text}.`;
  }
  const times = (clean ?? measured.value) / roofline.value;
  const how = times >= 1.05 ? `, ${times >= 10 ? Math.round(times) : times.toFixed(1)} times less` : '';
  return `${time}; the roofline allows ${msText(roofline.value)}${how}.`;
}

/**
 * The largest bar beyond the roofline, and the next ones that are worth a word.
 * @param busy only bars that another process cannot lengthen: kernels and copies of a GPU; null where there are none
 */
function causeSentence(stage: StageWaterfall, busy: boolean): string | null {
  const measured = stage.measured_ms.value ?? 0;
  const beyond = stage.bars
    .filter(({ id, ms }) => id !== 'roofline' && id !== 'profiler_overhead' && ms > 0)
    .filter(({ id }) => !busy || (stage.source === 'trace' && onDevice(id)))
    .toSorted((a, b) => b.ms - a.ms);
  const [first, ...rest] = beyond;
  if (busy && !first) return null;
  if (!first || measured <= 0) return 'Nothing lies between the roofline and the measurement.';
  const next = rest.filter(({ ms }) => ms >= 0.1 * measured).slice(0, 2);
  const also = next.length > 0 ? `; then ${next.map(told).join(' and ')}` : '';
  return `The largest cause is ${told(first)}${also}.`;
}

/** Bars of the device's own work. */
const onDevice = (id: string): boolean => /^(serial|inefficiency|nonessential|kernels|exposed_)/.test(id);

/** The clean time, ms, where the profiler added so much that both must be said; null where it did not. */
function addedByProfiler({ source, clean_ms, measured_ms }: StageWaterfall): number | null {
  if (source !== 'trace' || clean_ms.value === null || measured_ms.value === null) return null;
  return Math.abs(measured_ms.value - clean_ms.value) >= 0.05 * measured_ms.value ? clean_ms.value : null;
}

const told = ({ label, ms, share }: WaterfallBar): string =>
  `${label}: ${msText(ms)} (${percentText(share)})`;

/** @param untimed whether findings that claim no gain may lead: where nothing has a time, all are such */
function changeSentence(found: readonly Finding[], untimed = false): string {
  const first =
    found.find(({ severity, hidden_by }) => (untimed || severity !== 'info') && hidden_by === null) ?? null;
  if (!first) return 'Nothing significant to change was found.';
  const expected = expectedWords(first);
  return `${withoutEnd(first.title)}. Change first: ${withoutEnd(firstSentence(first.change.text))}${expected}.`;
}

/** ": 6.2 ms less are expected of a decode step (5.1 ms to 6.3 ms)"; of a token where no step gets shorter; '' without a gain. */
export function expectedWords({ gain, stage }: Pick<Finding, 'gain' | 'stage'>): string {
  if (!gain || gain.expected_ms <= 0) return '';
  if (gain.per === 'token') {
    const before = gain.after_ms + gain.expected_ms;
    return `: ${msText(gain.after_ms)} per token are expected instead of ${msText(before)}, in steps that are no shorter`;
  }
  const of = stage && stage !== 'outside' ? ` of ${instanceWord(stage)}` : '';
  return `: ${msText(gain.expected_ms)} less are expected${of} (${msText(gain.low_ms)} to ${msText(gain.high_ms)})`;
}

/** What a change is; how it is done stands in the finding. */
const firstSentence = (text: string): string => /^.*?[.](?=\s+\p{Lu})/su.exec(text)?.[0] ?? text;

const withoutEnd = (text: string): string => text.replace(/[.\s]+$/, '');
const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
