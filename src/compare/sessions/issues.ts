import { kernelNoun } from '../../vocabulary/kernel-changes.js';
import type { Issue } from '../../model/document.js';
import type { CompareResult } from '../../model/documents/compare.js';
import { formatFigure } from '../../vocabulary/format.js';
import type { Side } from './side.js';
import { isComparedProfiled, isScaled, scaledSides } from '../../facts/waterfall/recorded-bars.js';

const hasCleanRun = ({ session }: Side): boolean =>
  session.manifest.executions.some(({ purpose }) => purpose === 'clean');

/** Differences in what the times measure, and phases with a mean over several batch sizes. */
export function timingIssues(sides: readonly Side[]): Issue[] {
  const list: Issue[] = [];
  const sideNames = (namedSides: readonly Side[]): string =>
    namedSides.map(({ session }) => session.user.name ?? session.id).join(', ');
  const under = new Map<string, { lacking: Side[]; without: Side[]; phases: string[] }>();
  for (const phase of new Set(sides.flatMap(({ stages }) => stages.map((stage) => stage.phase)))) {
    const having = (condition: (stage: Side['stages'][number]) => boolean): Side[] =>
      sides.filter(({ stages }) => stages.some((stage) => stage.phase === phase && condition(stage)));
    const lacking = having(({ is_clean }) => is_clean === false);
    const clean = having(({ is_clean }) => is_clean === true);
    if (lacking.length === 0 || clean.length === 0) continue;
    const without = having((stage) => stage.is_clean === true && stage.profiled_ms === undefined);
    const key = `${sideNames(lacking)}; ${sideNames(without)}`;
    const known = under.get(key) ?? { lacking, without, phases: [] };
    under.set(key, { ...known, phases: [...known.phases, phase] });
  }
  for (const { lacking, without, phases } of under.values()) {
    const times = `Times of ${phases.join(', ')}`;
    // Without the profiler, a program records only the stages that it or its engine times itself.
    const isRun = lacking.some(hasCleanRun);
    const onCpu = lacking.some(({ waterfalls }) => waterfalls.some(({ source }) => source === 'operators'));
    const byTorch = lacking.every(({ profiler: name }) => name === 'torch.profiler');
    const profiler = onCpu || byTorch ? 'torch' : 'nsys';
    const why = `${sideNames(lacking)} ${lacking.length === 1 ? 'has' : 'have'} ${isRun ? 'no such times without it' : `no clean execution (inferscope run --evaluator none,${profiler})`}`;
    list.push({
      code: 'times_under_profiler',
      severity: without.length === 0 ? 'info' : 'warning',
      text:
        without.length === 0
          ? `${times} are those under the profiler: ${why}.`
          : `${times} are under the profiler except those of ${sideNames(without)}, which ran without one: ${why}. The difference includes the profiler's overhead.`,
    });
  }
  list.push(...profilerIssues(sides, sideNames));
  const isUnknown = ({ kind, roofline_ms: limit }: Side['waterfalls'][number]): boolean =>
    limit.value === null &&
    sides.some((other) =>
      other.waterfalls.some((found) => found.kind === kind && found.roofline_ms.value !== null),
    );
  const unknown = sides.filter(({ waterfalls }) => waterfalls.some(isUnknown));
  if (unknown.length > 0)
    list.push({
      code: 'no_roofline_on_a_side',
      severity: 'info',
      text: `The roofline of ${sideNames(unknown)} is unknown: its kernels are not split into roofline and time above it; their bars are "as measured".`,
    });
  const slower = sides.flatMap((side) => {
    const stages = side.waterfalls.filter(
      (stage) => stage.source === 'trace' && isScaled(stage) && !isComparedProfiled(stage.kind, sides),
    );
    const times = stages.map(
      ({ kind, clean_ms: clean, measured_ms: profiled }) =>
        `${kind} ${formatFigure(clean)} instead of ${formatFigure(profiled)}`,
    );
    return times.length === 0 ? [] : [`${sideNames([side])} (${times.join(', ')})`];
  });
  if (slower.length > 0)
    list.push({
      code: 'slower_clean_run',
      severity: 'info',
      text: `${slower.join(', ')} took longer without the profiler: bars are longer accordingly; classes and kernels are as recorded under the profiler.`,
    });
  const scaled = scaledSides(sides, false).filter(
    ({ kernels, waterfalls }) =>
      kernels.length > 0 && waterfalls.some(({ source }) => source === 'operators'),
  );
  if (scaled.length > 0)
    list.push({
      code: 'operators_under_profiler',
      severity: 'info',
      text: `Classes and operators of ${sideNames(scaled)} are as recorded under the profiler, which slows them; stages and bars show times without it.`,
    });
  const mixed = new Map<string, Side[]>();
  for (const side of sides) {
    const stages = side.stages.filter(({ batch_sizes: sizes }) => (sizes?.length ?? 0) > 1);
    const sizes = [...new Set(stages.flatMap(({ batch_sizes }) => batch_sizes ?? []))].join(', ');
    if (sizes !== '') mixed.set(sizes, [...(mixed.get(sizes) ?? []), side]);
  }
  for (const [sizes, having] of mixed) {
    const text = `${sideNames(having)} ran several batch sizes (${sizes}): means are over all of them. To compare sizes, record one session per size.`;
    list.push({ code: 'several_batch_sizes', severity: 'warning', text });
  }
  return list;
}

/** Stages that no session has without a profiler, if the profilers differ: each adds another time. */
function profilerIssues(sides: readonly Side[], namesOf: (sides: readonly Side[]) => string): Issue[] {
  const phases = [...new Set(sides.flatMap(({ stages }) => stages.map(({ phase }) => phase)))];
  const lists = phases.flatMap((phase) => {
    const having = sides.filter(({ stages }) => stages.some((stage) => stage.phase === phase));
    const areClean = having.flatMap(({ stages }) =>
      stages.flatMap((stage) => (stage.phase === phase ? [stage.is_clean] : [])),
    );
    const profilers = new Set(having.flatMap(({ profiler }) => profiler ?? []));
    return areClean.every((isClean) => isClean === false) && profilers.size > 1 ? [{ phase, having }] : [];
  });
  if (lists.length === 0) return [];
  const having = sides.filter((side) => lists.some((list) => list.having.includes(side)));
  const tools = [...new Set(having.flatMap(({ profiler }) => profiler ?? []))].map(
    (name) => `${name} (${namesOf(having.filter(({ profiler }) => profiler === name))})`,
  );
  return [
    {
      code: 'times_under_profiler',
      severity: 'warning',
      text: `Times of ${lists.map(({ phase }) => phase).join(', ')} are under different profilers, ${tools.join(' and ')}: the difference includes what each of them adds.`,
    },
  ];
}

/** The ranks that are compared need not have one number. */
export const rankIssues = (sides: readonly Side[]): Issue[] =>
  sides.flatMap(({ session, whyRank }): Issue[] =>
    whyRank === undefined
      ? []
      : [
          {
            code: 'shown_rank',
            severity: 'info',
            text: `${session.user.name ?? session.id}: ${whyRank}`,
          },
        ],
  );

export function recordingIssues(what: CompareResult['what'], sides: readonly Side[]): Issue[] {
  const without = sides.filter(({ kernels }) => kernels.length === 0);
  // A range or step of unknown kind may differ between programs, so its kernels or operators are not compared.
  if (without.length === sides.length) return [];
  return without.map(({ session }) => ({
    code: 'operators_not_recorded',
    severity: 'info',
    text: `${session.user.name ?? session.id} recorded no ${kernelNoun(what)}: its classes are not recorded, and the ${kernelNoun(what)} of the others are compared with nothing.`,
  }));
}
