import { document, type Document } from '../../model/document.js';
import {
  type ExplainResult,
  type VerifyResult,
  type WaterfallKind,
  verifyVersion,
} from '../../model/documents/explain.js';
import { hasSubject } from '../../model/subjects.js';
import type { Session } from '../../session/open.js';
import { withRecordedBars } from '../../facts/waterfall/recorded-bars.js';
import { explainSession } from '../explain/explain.js';
import { checkComparable } from './comparable.js';
import { type ChangeVerdict, findingOutcomes } from './finding-outcomes.js';
import { stagePairs, type StageVerdict } from './stage-pairs.js';
import {
  formatFigure,
  formatNumber,
  formatPercent,
  formatSigned,
  minFactorShare,
  plural,
} from '../../vocabulary/format.js';
import { gainPlace } from '../../vocabulary/change-outcomes.js';
import { capitalize } from '../../vocabulary/sentence.js';
import { pointLabel } from '../../vocabulary/bench.js';
import { stageLabel } from '../../vocabulary/stages.js';

/**
 * Compares the expected gains of one session's findings with those achieved in a second session that has the changes. Graded
 * on wall time if its 95 % interval is at most ± 10 % in both or the difference is far above its error, else on the time of
 * kernels and copies if both have a GPU timeline.
 * @throws E_USAGE for sessions of different models or devices, or one session twice
 */
export async function verifySessions(before: Session, after: Session): Promise<Document<VerifyResult>> {
  const issues = checkComparable(before, after);
  const [earlier, later] = [await explainSession(before), await explainSession(after)];
  const batches = {
    before: before.manifest.workload?.batch_size ?? null,
    after: after.manifest.workload?.batch_size ?? null,
  };
  const [from, to] = await withRecordedBars([
    { session: before, waterfalls: earlier.data.stages },
    { session: after, waterfalls: later.data.stages },
  ]);
  const result = compareExplanations(
    { ...earlier.data, stages: from!.waterfalls },
    { ...later.data, stages: to!.waterfalls },
    batches,
  );
  if (result.stages.length === 0) {
    const text = [before, after].every(({ manifest }) => hasSubject(manifest, 'results'))
      ? `Results of other tools are not verified by stage. Compare them with: inferscope bench compare ${before.id} ${after.id}`
      : noCommonStage([earlier.data, later.data], result.changes.length > 0);
    issues.push({ code: 'no_common_stage', severity: 'warning', text });
  }
  return document('verify', verifyVersion, result, issues);
}

function noCommonStage(explained: readonly ExplainResult[], hasFindings: boolean): string {
  const why = explained.every(({ stages }) => stages.some(({ kind }) => kind === 'other'))
    ? 'Common to the sessions are only steps and ranges of unknown kind, with work that may have changed'
    : 'The sessions have no common stage or load with times in both';
  return `${why}${hasFindings ? ': only findings are compared' : ''}.`;
}

/** The result of one stage only, with the sentences and the score of what is left. */
export function verifiedStage(result: VerifyResult, kind: WaterfallKind): VerifyResult {
  const stages = result.stages.filter((stage) => stage.kind === kind);
  const changes = result.changes.filter(({ stage }) => stage === null || stage === kind);
  const score = scoreOf(changes);
  return { ...result, stages, changes, score, sentences: sentences(stages, changes, score) };
}

/** The comparison of two explanations. */
export function compareExplanations(
  before: ExplainResult,
  after: ExplainResult,
  batches: { before: number | null; after: number | null },
): VerifyResult {
  const pairs = stagePairs(before.stages, after.stages, batches);
  const changes = findingOutcomes(before, after, pairs);
  const stages = pairs.map(({ verdict }) => verdict);
  const score = scoreOf(changes);
  return {
    before: before.session,
    after: after.session,
    stages,
    changes,
    score,
    sentences: sentences(stages, changes, score),
  };
}

function scoreOf(changes: readonly ChangeVerdict[]): VerifyResult['score'] {
  const graded = changes.filter(({ as_expected: inside }) => inside !== null);
  const errors = graded
    .flatMap(({ error }) => (error === null ? [] : [Math.abs(error)]))
    .toSorted((x, y) => x - y);
  const middle = errors.length / 2;
  return {
    graded: graded.length,
    as_expected: graded.filter(({ as_expected: inside }) => inside).length,
    median_absolute_error:
      errors.length === 0
        ? null
        : Number.isInteger(middle)
          ? (errors[middle - 1]! + errors[middle]!) / 2
          : errors[Math.floor(middle)]!,
  };
}

const profiledWords: Readonly<Record<StageVerdict['profiled'], string>> = {
  none: '',
  both: ', under the profiler',
  before: ', only before the change under a profiler',
  after: ', only after the change under a profiler',
};

/** An error below 1 % is smaller than any spread of the times. */
const errorText = (error: number): string =>
  error < 0.01
    ? 'less than 1 %'
    : error < minFactorShare
      ? formatPercent(error)
      : `a factor of ${formatNumber(1 + error)}`;

/** No time is known to a thousandth. */
const changeText = (change: number): string =>
  change !== 0 && Math.abs(change) < 0.001 ? '<0.1 %' : formatSigned(change, 'ratio');

function sentences(
  stages: readonly StageVerdict[],
  changes: readonly ChangeVerdict[],
  { graded, as_expected: inside, median_absolute_error: error }: VerifyResult['score'],
): string[] {
  const stageSentences = stages.map((stage) => {
    const [from, to] = [stage.before_ms.value ?? 0, stage.after_ms.value ?? 0];
    const change = from > 0 ? to / from - 1 : 0;
    const name = capitalize(stageLabel({ ...stage, name: null }));
    return `${name}${stage.point === null ? '' : ` at ${pointLabel(stage.point)}`}${stage.sequences === null ? '' : `, per ${stage.sequences.before === 1 ? stage.sequences.unit : plural(stage.sequences.before, stage.sequences.unit)}`}: ${stage.graded_on === 'gpu' ? 'kernels and copies ' : ''}${formatFigure(stage.before_ms)} before, ${formatFigure(stage.after_ms)} after (${changeText(change)})${profiledWords[stage.profiled]}.`;
  });
  const made = changes.filter(({ outcome }) => outcome === 'gone' || outcome === 'smaller');
  stageSentences.push(
    graded === 0
      ? changes.every(({ outcome }) => outcome === 'new')
        ? 'The earlier session has no finding to verify.'
        : made.length === 0
          ? changes.every(({ outcome }) => outcome === 'new' || outcome === 'not_judged')
            ? 'The later session cannot show whether findings of the earlier one are gone.'
            : 'No finding of the earlier session is gone: there is no gain to measure.'
          : made.every(({ expected_ms: expected }) => expected === null)
            ? `${plural(made.length, 'finding')} gone or smaller, without an expected gain.`
            : 'The gain of the findings that are gone cannot be measured.'
      : graded === 1
        ? `The achieved gain is ${gainPlace(changes.find(({ as_expected: judged }) => judged !== null)!)} the expected interval${error === null ? '' : `; the expected gain is off by ${errorText(error)}`}.`
        : `Achieved gains within the expected interval: ${inside} of ${graded}${error === null ? '' : `; the expected gains are off by ${errorText(error)} (median)`}.`,
  );
  const remaining = changes.filter(
    ({ outcome, expected_ms }) => outcome === 'still_there' && expected_ms !== null,
  );
  const fresh = changes.filter(({ outcome }) => outcome === 'new');
  if (remaining[0])
    stageSentences.push(
      `Still there: ${remaining[0].title}${remaining.length > 1 ? ` (and ${plural(remaining.length - 1, 'other')})` : ''}.`,
    );
  if (fresh[0])
    stageSentences.push(
      `New: ${fresh[0].title}${fresh.length > 1 ? ` (and ${plural(fresh.length - 1, 'other')})` : ''}.`,
    );
  return stageSentences;
}
