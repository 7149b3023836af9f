import { document, type Document } from '../../model/document.js';
import {
  type Change,
  type CompareResult,
  type KernelChange,
  type StageValue,
  compareVersion,
  kernelChanges,
} from '../../model/documents/compare.js';
import { InferscopeError } from '../../model/errors.js';
import { kernelKey } from '../../model/kernel-name.js';
import { hasRows, hasSubject } from '../../model/subjects.js';
import { idleIn } from '../../model/headline-time.js';
import { type Figure, mapFigure, missing } from '../../model/figure.js';
import { issuesAt } from '../../vocabulary/sentence-template.js';
import type { Session } from '../../session/open.js';
import { isSignificant } from '../../facts/difference/half-width.js';
import { attentionOf } from './attention.js';
import { environmentDifferences } from './environment.js';
import { gemmTiles } from './gemm-tiles.js';
import { compareHeadlines } from './headlines.js';
import { recordedSide } from './recorded-side.js';
import { hasOtherSize } from './other-size.js';
import { rankIssues, recordingIssues, timingIssues } from './issues.js';
import { modelOf, scalingOf } from './scaling.js';
import type { Side, SideKernel } from './side.js';
import { traceSide } from './trace-side.js';
import { withRecordedBars } from '../../facts/waterfall/recorded-bars.js';
import { comparedWaterfalls, waterfallsOf, withWaterfallTime } from './waterfalls.js';

const maxKernels = 200;
/** Smaller relative changes of a kernel's mean time or count are no change. */
const sameWithin = 0.05;

/**
 * Changes from the first session to the others, per mean instance of each phase, so that sessions of different lengths
 * compare. GPU timelines compare by kernels, programs on the CPU by operators.
 * @throws E_USAGE for fewer than two sessions, or kinds without anything in common
 */
export async function compareSessions(sessions: readonly Session[]): Promise<Document<CompareResult>> {
  if (sessions.length < 2) {
    throw new InferscopeError('E_USAGE', {
      what: 'session compare needs two sessions',
      why: `${sessions.length === 1 ? 'Only one was' : 'None were'} given.`,
      fix: 'inferscope session compare @last~1 @last',
    });
  }
  const repeated = sessions.find(({ id }, i) => sessions.findIndex((session) => session.id === id) !== i);
  if (repeated) {
    throw new InferscopeError('E_USAGE', {
      what: `session ${repeated.id} was given twice`,
      why: 'A session does not differ from itself.',
      fix: 'inferscope session compare @last~1 @last',
    });
  }
  const kinds = sessions.map(({ manifest }) => (hasRows(manifest, 'kernels') ? 'trace' : 'profile'));
  const [what] = kinds;
  if (kinds.some((kind) => kind !== what)) {
    const sessionKinds = sessions.map(
      ({ id }, i) => `${id} (${kinds[i] === 'trace' ? 'GPU timeline' : 'no GPU timeline'})`,
    );
    throw new InferscopeError('E_USAGE', {
      what: 'these sessions have nothing to compare with each other',
      why: `They are ${sessionKinds.join(', ')}.`,
      fix: 'Compare GPU timelines with each other, or programs on the CPU with each other.',
    });
  }
  const sides: Side[] = [];
  for (const session of sessions) {
    const side = await (hasSubject(session.manifest, 'timeline')
      ? traceSide(session)
      : recordedSide(session));
    const { waterfalls, ranks } = await waterfallsOf(side);
    const stages = side.stages.map((stage) => withWaterfallTime(stage, waterfalls));
    sides.push({ ...side, stages, waterfalls, ranks });
  }
  const issues = issuesAt(
    sessions.flatMap(({ id, user, issues: sessionIssues }) =>
      sessionIssues
        .filter(({ severity }) => severity !== 'info')
        .map((issue) => ({ issue, scope: user.name ?? id })),
    ),
  );
  return document('compare', compareVersion, compareSides(what!, await withRecordedBars(sides)), [
    ...rankIssues(sides),
    ...timingIssues(sides),
    ...recordingIssues(what!, sides),
    ...issues,
  ]);
}

/** The comparison itself, without database and files. */
export function compareSides(what: CompareResult['what'], sides: readonly Side[]): CompareResult {
  const all = kernelRows(sides);
  const counts = Object.fromEntries(
    kernelChanges.map((status) => [status, all.filter((row) => row.status === status).length]),
  ) as Record<KernelChange, number>;
  const parts = {
    what,
    sessions: sides.map(({ session, source }) => ({
      id: session.id,
      name: session.user.name,
      title: session.manifest.title,
      kind: session.manifest.kind,
      started_at: session.manifest.started_at,
      source,
    })),
    environment: environmentDifferences(sides),
    stages: stageRows(sides),
    waterfalls: comparedWaterfalls(sides),
    scaling: scalingOf(sides),
    classes: classRows(sides),
    kernels: all.slice(0, maxKernels),
    kernel_counts: counts,
    gemm_tiles: gemmTiles(sides),
    attention: attentionRows(sides),
  };
  return {
    ...parts,
    headlines: compareHeadlines(
      parts,
      sides.every((side) => modelOf(side) !== null),
    ),
  };
}

const unique = (values: string[]): string[] => [...new Set(values)];

function stageRows(sides: readonly Side[]): CompareResult['stages'] {
  return unique(sides.flatMap(({ stages }) => stages.map(({ phase }) => phase))).map((phase) => {
    const phaseStages = sides.map(({ stages }) => stages.find((stage) => stage.phase === phase));
    // Comparing a clean time with a profiled one would compare the profiler.
    const profiled = phaseStages.some((stage) => stage?.is_clean === false);
    const values = phaseStages.map((stage) =>
      stage ? stageValue(stage, (profiled ? stage.profiled_ms : null) ?? stage.value.duration_ms) : null,
    );
    return {
      phase,
      values,
      changes: values.map((value, i) => (i === 0 ? null : stageChange(values[0] ?? null, value))),
    };
  });
}

/** Rates, and a timeline's idle time, for the compared duration. */
function stageValue({ value, mfu_ms }: Side['stages'][number], duration: Figure): NonNullable<StageValue> {
  const { tokens, mfu, ...rest } = value;
  const idle =
    rest.kernels !== null && rest.busy_ms !== null && duration.value !== null
      ? idleIn(duration.value, rest.busy_ms)
      : null;
  const unknown = missing('no_tokens', 'how many tokens the stage computes is not known');
  const rate = (unit: string, source: string, perMs: (ms: number) => number) =>
    tokens ? mapFigure(duration, unit, source, perMs) : unknown;
  return {
    ...rest,
    idle_ms: idle?.idle ?? null,
    idle_share: idle?.share ?? null,
    duration_ms: duration,
    tokens,
    tokens_per_s: rate('tok/s', 'tokens / time', (ms) => (1e3 * tokens!) / ms),
    ms_per_token: rate('ms', 'time / tokens', (ms) => ms / tokens!),
    mfu:
      mfu_ms === null || mfu.value === null || duration.value === null
        ? mfu
        : { ...mfu, value: (mfu.value * mfu_ms) / duration.value },
  };
}

/** Whether the session recorded a phase's kernels or operators: a profile without an operator pass did not. */
const hasKernels = ({ kernels }: Side, phase: string): boolean =>
  kernels.some((kernel) => kernel.phase === phase);

/** Steps of different sizes are different work: whether they differ is judged by their time per token. */
function stageChange(from: StageValue, to: StageValue): Change {
  if (!from || !to || from.duration_ms.value === null || to.duration_ms.value === null) return null;
  const significant = hasOtherSize(from, to)
    ? isSignificant(from.ms_per_token, to.ms_per_token)
    : isSignificant(from.duration_ms, to.duration_ms);
  return { ...change(from.duration_ms.value, to.duration_ms.value)!, significant };
}

function change(from: number, to: number): Change {
  return { delta_ms: to - from, ratio: from === 0 ? null : to / from, significant: null };
}

function classRows(sides: readonly Side[]): CompareResult['classes'] {
  const classKey = (kernel: SideKernel) => `${kernel.phase}\n${kernel.class}`;
  const keys = new Map(
    sides.flatMap(({ kernels }) => kernels.map((kernel) => [classKey(kernel), kernel] as const)),
  );
  const rows = [...keys].map(([key, { phase, class: opClass }]) => {
    const values = sides.map((side) => {
      if (!hasKernels(side, phase)) return null;
      const { kernels } = side;
      const sameKernels = kernels.filter((kernel) => classKey(kernel) === key);
      const phaseMs = kernels.filter((kernel) => kernel.phase === phase).reduce((sum, { ms }) => sum + ms, 0);
      const ms = sameKernels.reduce((sum, kernel) => sum + kernel.ms, 0);
      return {
        ms,
        count: sameKernels.reduce((sum, { count }) => sum + count, 0),
        share: phaseMs > 0 ? ms / phaseMs : 0,
      };
    });
    return { phase, class: opClass, values, changes: changesOf(values) };
  });
  return rows.toSorted(
    (a, b) => phaseRank(a.phase) - phaseRank(b.phase) || largest(b.values) - largest(a.values),
  );
}

const phases = ['decode', 'prefill', 'mixed', 'training', 'sampling', 'outside'];
const phaseRank = (phase: string): number => (phases.includes(phase) ? phases.indexOf(phase) : phases.length);
const largest = (values: ({ ms: number } | null)[]): number =>
  Math.max(...values.map((value) => value?.ms ?? 0));

function changesOf(values: ({ ms: number } | null)[]): Change[] {
  const [first] = values;
  return values.map((value, i) => (i === 0 || !first || !value ? null : change(first.ms, value.ms)));
}

function kernelRows(sides: readonly Side[]): CompareResult['kernels'] {
  const maps = sides.map(({ kernels }) => byKernel(kernels));
  const keys = unique(maps.flatMap((map) => [...map.keys()]));
  const [first, last] = [sides[0]!, sides.at(-1)!];
  const rows = keys.flatMap((key) => {
    const sideKernels = maps.map((map) => map.get(key));
    const { phase, name, short_name, class: opClass } = sideKernels.find((kernel) => kernel !== undefined)!;
    // Unrecorded kernels are neither new nor removed.
    if (!hasKernels(first, phase) || !hasKernels(last, phase)) return [];
    const values = sideKernels.map((kernel) =>
      kernel ? { count: kernel.count, ms: kernel.ms, mean_ns: kernel.mean_ns } : null,
    );
    const ms = values.map((value) => value?.ms ?? 0);
    return [
      {
        phase,
        name,
        short_name,
        class: opClass,
        values,
        changes: ms.map((value, i) => (i === 0 ? null : change(ms[0]!, value))),
        status: statusOf(values[0] ?? null, values.at(-1) ?? null),
      },
    ];
  });
  const largestChange = (row: (typeof rows)[number]) =>
    Math.max(...row.changes.map((change) => Math.abs(change?.delta_ms ?? 0)));
  return rows.toSorted((a, b) => largestChange(b) - largestChange(a) || a.name.localeCompare(b.name, 'en'));
}

/** Kernels by phase and name, whatever tool wrote the name; overloads that only their parameters distinguish are one. */
function byKernel(kernels: readonly SideKernel[]): Map<string, SideKernel> {
  const kernelsByName = new Map<string, SideKernel>();
  for (const kernel of kernels) {
    const key = `${kernel.phase}\n${kernelKey(kernel.name)}`;
    const previous = kernelsByName.get(key);
    const count = kernel.count + (previous?.count ?? 0);
    const ms = kernel.ms + (previous?.ms ?? 0);
    kernelsByName.set(key, previous ? { ...previous, count, ms, mean_ns: (1e6 * ms) / count } : kernel);
  }
  return kernelsByName;
}

type Value = CompareResult['kernels'][number]['values'][number];

function statusOf(from: Value, to: Value): KernelChange {
  if (!from) return to ? 'new' : 'between';
  if (!to) return 'gone';
  const [time, count] = [to.mean_ns / from.mean_ns, to.count / from.count];
  const isChange = (ratio: number) => ratio > 1 + sameWithin || ratio < 1 - sameWithin;
  // The larger of the two changes names the status: 23 calls instead of one are "more", even if each took 8 % less.
  const byCount = isChange(count) && Math.abs(Math.log(count)) > Math.abs(Math.log(time));
  if (byCount || !isChange(time)) return isChange(count) ? (count > 1 ? 'more' : 'fewer') : 'same';
  return time < 1 ? 'faster' : 'slower';
}

function attentionRows(sides: readonly Side[]): CompareResult['attention'] {
  return phases
    .filter((phase) => sides.some(({ kernels }) => kernels.some((kernel) => kernel.phase === phase)))
    .flatMap((phase) => {
      const implementations = sides.map((side) => attentionOf(side, phase));
      if (implementations.every((names) => names.length === 0)) return [];
      const hasPhase = sides.map(({ kernels }) => kernels.some((kernel) => kernel.phase === phase));
      const names = implementations.map((sideNames, index) =>
        hasPhase[index] ? sideNames.join(' + ') || 'none recognized' : `no ${phase}`,
      );
      const inPhase = names.filter((_, index) => hasPhase[index]);
      if (inPhase.length < 2) return [];
      const switched = new Set(inPhase).size > 1;
      const text = switched
        ? `Attention in ${phase} switched: ${names.join(' → ')}.`
        : `Attention in ${phase} is ${inPhase[0]} in all that have it.`;
      return [{ phase, implementations, switched, text }];
    });
}
