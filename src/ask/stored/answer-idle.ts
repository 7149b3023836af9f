import type { StageWaterfall } from '../../model/documents/explain.js';
import { gapParts } from '../../model/bars.js';
import { busyMs, headlineTime, idleIn, isProfiled } from '../../model/headline-time.js';
import { barTexts, stageText } from './finding-parts.js';
import { shownRows } from './shown-rows.js';
import {
  notKnown,
  capture,
  hasTable,
  instanceOf,
  lacksStage,
  partFrom,
  questionStages,
  type StoredFacts,
  type StoredPart,
  known,
  type TopicAnswer,
} from './stored-facts.js';
import { formatCount, formatMs, formatPercent, plural } from '../../vocabulary/format.js';
import { capitalize } from '../../vocabulary/sentence.js';

/** "Is the GPU idle between steps?": idle time of a stage, and what the device waits for. */
export function idleTime(facts: StoredFacts): TopicAnswer {
  const stages = questionStages(facts).filter(({ measured_ms: time }) => time.value !== null);
  const traced = stages.filter(({ source }) => source === 'trace');
  if (traced.length === 0) {
    return (
      withoutGpu(facts, stages.slice(0, 1).map(stageText)) ??
      (stages.length === 0 ? lacksStage(facts) : null) ??
      notKnown(
        'The session has no GPU timeline: idle time and its causes were not recorded.',
        capture.timeline,
      )
    );
  }
  const direct = traced.map((stage) => idlePart(stage, facts.question.isYesNo));
  return known(direct[0]!, [
    ...direct.slice(1),
    ...traced.slice(0, 2).flatMap((stage) => barTexts(stage, gapParts)),
  ]);
}

/** The answer to questions about the GPU if the session ran on the CPU. */
export const withoutGpu = ({ session }: StoredFacts, evidence: readonly StoredPart[]): TopicAnswer | null =>
  session.manifest.workload?.device?.startsWith('cpu') === true
    ? known(partFrom('manifest', 'No GPU was used: the session ran on the CPU.'), evidence)
    : null;

/**
 * Busy time of the stages in the question; null without a GPU timeline.
 * @param yes how an answer to a question about a busy GPU starts
 */
export function busyTime(facts: StoredFacts, yes = 'Yes: '): StoredPart[] | null {
  const traced = questionStages(facts).filter(
    ({ source, measured_ms: time }) => source === 'trace' && time.value,
  );
  if (traced.length === 0) return null;
  return traced.map((stage) => {
    const { time, busy } = idleOf(stage);
    const share = busy / time;
    const word = facts.question.isYesNo ? (share >= 0.95 ? yes : 'No: ') : '';
    return partFrom(
      'waterfall',
      `${word}the GPU is busy for ${formatPercent(share)} of ${instanceOf(stage)} (${formatMs(busy)} of ${formatMs(time)}${isProfiled(stage) ? ' under the profiler' : ''}).`,
      stage.bars.length,
    );
  });
}

/** Idle and busy time within the stage's headline time. */
export function idleOf(stage: StageWaterfall): { time: number; busy: number; idle: number; share: number } {
  const time = headlineTime(stage).value ?? 0;
  const { idle, share } = idleIn(time, busyMs(stage));
  return { time, busy: time - idle, idle, share };
}

function idlePart(stage: StageWaterfall, isYesNo: boolean): StoredPart {
  const { time, idle, share } = idleOf(stage);
  const word = !isYesNo ? '' : share >= 0.1 ? 'Yes: ' : share >= 0.02 ? 'A little: ' : 'No: ';
  return partFrom(
    'waterfall',
    `${word}the GPU is idle for ${formatPercent(share)} of ${instanceOf(stage)} (${formatMs(idle)} of ${formatMs(time)}${isProfiled(stage) ? ' under the profiler' : ''}).`,
    stage.bars.length,
  );
}

/** "How many kernels are launched per step?" */
export async function launchCounts(facts: StoredFacts): Promise<TopicAnswer> {
  const { trace } = await facts.captures();
  if (!trace?.data.source.gpu_used)
    return notKnown('The session has no GPU timeline: launches are not known.', capture.timeline);
  const kinds = new Set(questionStages(facts).map(({ kind }) => kind));
  const parts = trace.data.phases
    .filter(({ kind }) => kinds.has(kind))
    .map(({ kind, kernels, launches, copies }) => {
      const phaseLaunches = trace.data.launches.phases.find((phase) => phase.kind === kind);
      const layers = trace.data.launches.layers.value;
      const each = phaseLaunches?.launches_per_layer.value ?? null;
      const perLayer =
        each === null || layers === null ? '' : `: ${formatCount(each)} for each of ${layers} layers`;
      return partFrom(
        'trace',
        `${capitalize(instanceOf({ kind, point: null }))} runs ${plural(kernels, 'kernel')} and ${plural(copies, 'copy', 'copies')} from ${plural(launches, 'launch', 'launches')}${perLayer}.`,
      );
    });
  const [first, ...rest] = parts;
  if (!first)
    return lacksStage(facts) ?? notKnown('No stage of the session launches kernels.', capture.timeline);
  return known(first, [...rest, ...(await launchCalls(facts))]);
}

interface LaunchRow extends Record<string, unknown> {
  name: string;
  calls: number;
  mean_us: number;
  total_ms: number;
}

/** Calls that launch kernels. */
async function launchCalls(facts: StoredFacts): Promise<StoredPart[]> {
  if (!hasTable(facts, 'api_calls')) return [];
  const shown = await shownRows(facts, 'api_calls');
  const sql = `SELECT name, count(*) AS calls, avg(dur_ns) / 1e3 AS mean_us, sum(dur_ns) / 1e6 AS total_ms
FROM api_calls WHERE ${shown.where} AND name ILIKE '%launch%'
GROUP BY name ORDER BY calls DESC`;
  const rows = await facts.database.query<LaunchRow>(sql);
  if (rows.length === 0) return [];
  const lines = rows
    .slice(0, 4)
    .map(
      ({ name, calls, mean_us: mean, total_ms: ms }) =>
        `- ${name}: ${plural(calls, 'call')}, ${calls > 1 ? `${formatMs(mean / 1e3)} each, ` : ''}${formatMs(ms)}`,
    );
  return [{ text: `Launches of ${shown.name}:\n${lines.join('\n')}`, sql, from: 'sql', rows: rows.length }];
}
