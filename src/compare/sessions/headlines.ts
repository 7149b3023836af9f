import { stepKinds } from '../../model/record.js';
import type { CompareResult, StageValue } from '../../model/documents/compare.js';
import { perInstance, phaseLabel } from '../../vocabulary/stages.js';
import {
  formatCount,
  formatFactor,
  formatFigure,
  formatPercent,
  formatUtilization,
  formatSigned,
  plural,
  noValue,
} from '../../vocabulary/format.js';
import type { Figure } from '../../model/figure.js';
import { halfInterval } from '../../model/half-interval.js';
import { hasOtherSize } from './other-size.js';
import { cutMiddle } from '../../vocabulary/cut.js';
import { kernelChangeLabels, kernelNoun } from '../../vocabulary/kernel-changes.js';
import { capitalize } from '../../vocabulary/sentence.js';
import { settingLabel } from '../../vocabulary/memory-components.js';
import { argumentsLabel } from './environment.js';

type Parts = Omit<CompareResult, 'headlines'>;

/**
 * The changes in sentences: the last session compared with the first.
 * @param modelsKnown whether all sessions record their model
 */
export function compareHeadlines(parts: Parts, modelsKnown: boolean): CompareResult['headlines'] {
  const names = parts.sessions.map(({ name, id }) => name ?? id);
  const last = names.length - 1;
  const { stages } = parts;
  const hasCommon = stages.some(({ values }) => values[0] && values[last]);
  return [
    ...stageLines(parts, last, modelsKnown && isSameWork(parts)),
    ...(hasCommon
      ? []
      : [{ id: 'no_common_stage', text: `${names[0]} and ${names[last]} have no stage in common.` }]),
    ...parts.attention
      .filter(({ switched }) => switched)
      .map(({ text }) => ({ id: 'attention_switched', text })),
    ...gemmLines(parts, last),
    ...kernelLine(parts),
    ...environmentLine(parts, last),
  ];
}

/** Settings of a workload that change the number of tokens per step. */
const sizeSettings: ReadonlySet<string> = new Set(
  ['batch_size', 'input_len', 'output_len'].map(settingLabel),
);

/** Whether all sessions run one model in one way, at most with other sizes: only then can their throughput scale. */
const isSameWork = ({ environment }: Parts): boolean =>
  environment.every(
    ({ label, part, values }) =>
      part !== 'workload' ||
      label === argumentsLabel ||
      sizeSettings.has(label) ||
      values.some((value) => value === null),
  );

const headlineKinds: ReadonlySet<string> = new Set([...stepKinds, 'training', 'outside']);

function stageLines({ stages }: Parts, last: number, sameWork: boolean): CompareResult['headlines'] {
  const named = stages.filter(({ phase }) => headlineKinds.has(phase));
  // Steps of unknown kind only where there are no others.
  return (named.length > 0 ? named : stages.filter(({ phase }) => phase === 'other')).flatMap(
    ({ phase: kind, values, changes }) => {
      const sides = last > 1 ? ` (last session against the first)` : '';
      const phase = `${kind === 'outside' ? wholeOrRest(stages) : kind === 'other' ? phaseLabel(kind) : kind}${sides}`;
      const [from, to, change] = [values[0], values[last], changes[last]];
      if (!from || !to || !change || change.ratio === null) return [];
      const isOtherSize = hasOtherSize(from, to);
      const { significant } = change;
      const isInsignificant = significant === false;
      const lead = isInsignificant ? 'no significant difference, within the spread of both: ' : '';
      const spreadNote = significant === null ? ', spread not known' : '';
      const times = `${formatFigure(from.duration_ms)} → ${formatFigure(to.duration_ms)}`;
      const rates = rateTexts(from, to, { isInsignificant, sameWork });
      // Steps of different sizes are different work, so work per second is compared instead of time.
      const texts =
        rates !== null && isOtherSize
          ? [
              `${phase}: ${lead}${rates.join(', ')}${spreadNote}`,
              `per step ${times} for ${formatCount(from.tokens!)} → ${plural(to.tokens!, 'token')}`,
            ]
          : [
              `${phase}: ${lead}${times}${isInsignificant ? '' : `, ${speedWords(from.duration_ms, to.duration_ms)}`}${spreadNote}`,
              ...(rates?.slice(1) ?? []),
            ];
      if (from.mfu.value !== null && to.mfu.value !== null)
        texts.push(`MFU ${formatUtilization(from.mfu)} → ${formatUtilization(to.mfu)}`);
      if (from.idle_share !== null && to.idle_share !== null) {
        texts.push(`idle ${formatPercent(from.idle_share)} → ${formatPercent(to.idle_share)}`);
      }
      if (from.launches !== null && to.launches !== null) {
        texts.push(`launches ${formatCount(from.launches)} → ${formatCount(to.launches)}`);
      }
      return [{ id: 'stage', text: `${texts.join('; ')}.` }];
    },
  );
}

/** What is outside of marked stages is the whole capture where none is marked. */
const wholeOrRest = (stages: Parts['stages']): string => phaseLabel(stages.length === 1 ? null : 'outside');

type Stage = NonNullable<StageValue>;

/** "2.00× as fast", "2.00× as long", "12 % more time", from two times; a factor with the digits that their spread supports. */
function speedWords(from: Figure, to: Figure): string {
  const ratio = to.value! / from.value!;
  const factor = ratio < 1 ? 1 / ratio : ratio;
  const spread = Math.hypot(...[from, to].map((time) => (halfInterval(time) ?? 0) / time.value!));
  if (factor >= 1.995) return `${formatFactor(factor, factor * spread)} as ${ratio < 1 ? 'fast' : 'long'}`;
  return `${formatPercent(Math.abs(ratio - 1))} ${ratio < 1 ? 'less' : 'more'} time`;
}

/**
 * Throughput, time per token, share of linear scaling; null if tokens are unknown.
 * @param isInsignificant whether the difference is, so that no factor is stated
 * @param sameWork whether throughput can scale from one to the other
 */
function rateTexts(
  from: Stage,
  to: Stage,
  { isInsignificant, sameWork }: { isInsignificant: boolean; sameWork: boolean },
): string[] | null {
  const [before, after] = [from.tokens_per_s.value, to.tokens_per_s.value];
  if (before === null || after === null || !from.tokens || !to.tokens) return null;
  const ratio = after / before;
  const by = ratio >= 1.995 || ratio <= 0.5 ? formatFactor(ratio) : formatSigned(ratio - 1, 'ratio');
  const throughput = `${formatFigure(from.tokens_per_s)} → ${formatFigure(to.tokens_per_s)}${isInsignificant ? '' : ` (${by})`}`;
  const tokenRatio = to.tokens / from.tokens;
  if (tokenRatio === 1) return [throughput];
  const perToken = `per token ${formatFigure(from.ms_per_token)} → ${formatFigure(to.ms_per_token)}`;
  // Fewer tokens are not expected to scale.
  if (!sameWork || isInsignificant || tokenRatio < 1) return [throughput, perToken];
  return [throughput, perToken, `${formatPercent(ratio / tokenRatio)} of linear scaling`];
}

/** Number of kernels of the class GEMM per instance, with helpers such as split-K reductions, and their tiles. */
function gemmLines({ classes, gemm_tiles, what }: Parts, last: number): CompareResult['headlines'] {
  const gemmRows = classes.filter((row) => row.class === 'gemm' && row.values[0] && row.values[last]);
  const phases = [...new Set([...gemmRows, ...gemm_tiles].map(({ phase }) => phase))];
  return phases.flatMap((phase) => {
    const counts = gemmRows.find((row) => row.phase === phase)?.values.map((value) => value?.count ?? null);
    const rows = gemm_tiles.filter((row) => row.phase === phase);
    const differ = new Set(counts).size > 1;
    const countTexts =
      counts === undefined
        ? []
        : [
            differ
              ? counts.map((count) => (count === null ? noValue : formatCount(count))).join(' → ')
              : `${formatCount(counts[0]!)} in each`,
          ];
    if (rows.length === 0 && !differ) return [];
    const byPosition = rows[0]?.matched_by === 'position';
    const tiles = rows.slice(0, 4).map(({ count, tiles: [first, ...more] }) => {
      const words = tileWords(first!, more.at(-1)!);
      return byPosition && rows.length > 1 ? `${formatCount(count)} × ${words}` : words;
    });
    const changed = rows.reduce((sum, { count }) => sum + count, 0);
    const lead = byPosition ? `${formatCount(changed)} with another tile` : 'by tile or kernel name';
    const tileTexts = rows.length === 0 ? [] : [`${lead}: ${tiles.join(', ')}`];
    return [
      {
        id: 'gemm_tiles',
        text: `GEMM ${kernelNoun(what)} ${perInstance(phase)}: ${[...countTexts, ...tileTexts].join('; ')}.`,
      },
    ];
  });
}

/** "8 × 64x8x64 gone", "12 × 64x16x64 new", or both joined by an arrow. */
const tileWords = (first: string, last: string): string =>
  first === noValue ? `${last} new` : last === noValue ? `${first} gone` : `${first} → ${last}`;

function kernelLine({ kernel_counts, what }: Parts): CompareResult['headlines'] {
  const changeTexts = (['new', 'gone', 'faster', 'slower', 'more', 'fewer'] as const)
    .filter((status) => (kernel_counts[status] ?? 0) > 0)
    .map((status) => `${kernel_counts[status]} ${kernelChangeLabels[status]}`);
  const noun = capitalize(kernelNoun(what));
  const same = kernel_counts.same ?? 0;
  const rest = same > 0 ? `; ${same} the same` : '';
  return changeTexts.length > 0
    ? [{ id: 'kernels', text: `${noun}: ${changeTexts.join(', ')}${rest}.` }]
    : [];
}

/** Longer values, such as arguments, are whole in the table of differences. */
const maxValueLength = 60;

/** Whether a stage that both sessions have may have changed: without a known spread, its change is not ruled out. */
const mayDiffer = ({ stages }: Parts, last: number): boolean =>
  stages.some(({ changes }) => changes[last] && changes[last].significant !== false);

function environmentLine(parts: Parts, last: number): CompareResult['headlines'] {
  const { environment } = parts;
  const explaining = environment.filter(({ could_explain }) => could_explain !== null);
  if (explaining.length === 0) {
    // What one session does not record need not differ.
    const differs = environment.some(({ values }) => values.every((value) => value !== null));
    const which = differs ? ' that is known to change times' : '';
    // The lines of the stages have the sizes.
    const isOtherSize = parts.stages.some(
      ({ values: [from], values }) => from && values[last] && hasOtherSize(from, values[last]),
    );
    const lead = isOtherSize ? 'Apart from the tokens per step, no known difference' : 'No known difference';
    return [{ id: 'environment', text: `${lead} in workload, software or machine${which}.` }];
  }
  const words = explaining
    .slice(0, 4)
    .map(
      ({ label, values }) =>
        `${label} ${values.map((v) => cutMiddle(v ?? noValue, maxValueLength)).join(' → ')}`,
    );
  const moreText = explaining.length > 4 ? ` and ${explaining.length - 4} more` : '';
  const lead = mayDiffer(parts, last) ? 'What differs and could explain it' : 'Known differences';
  return [{ id: 'environment', text: `${lead}: ${words.join(', ')}${moreText}.` }];
}
