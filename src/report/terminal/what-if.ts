import type { Document } from '../../model/document.js';
import type { WhatIfResult } from '../../model/documents/explain.js';
import { stageNames } from '../explain-rows.js';
import { formatMs, nbsp } from '../format.js';
import { colour } from './colour.js';
import { textTable } from './table.js';
import { hanging, inert, readingWidth, withPlainSpaces } from './text.js';

type Stage = WhatIfResult['stages'][number];

/** Bars that change by less of the stage are not shown. */
const leastShare = 0.002;

/** What `explain --what-if` prints: each stage before and after with the interval, the bars that change, and on what it rests. */
export function whatIfText({ data, issues }: Document<WhatIfResult>, columns: number): string {
  const width = readingWidth(columns);
  const lines = [
    `  ${colour.bold(`What if: ${inert(data.change)}`)} — ${inert(data.session.name ?? data.session.title)}`,
    ...data.stages.flatMap((stage) => ['', ...stageLines(stage, width)]),
    ...issues
      .filter(({ severity, code }) => severity !== 'info' || code === 'no_waterfall')
      .flatMap(({ text }) => ['', ...hanging('  ', inert(text), width)]),
  ];
  return withPlainSpaces(lines.join('\n'));
}

function stageLines(stage: Stage, width: number): string[] {
  const name = `${stageNames[stage.kind] ?? stage.kind}${stage.point === null ? '' : ` at ${stage.point}`}`;
  const head = hanging('  ', whatIfSentence(stage, name), width).map((line) => colour.bold(line));
  if (stage.after_ms.value === null) return head;
  const least = leastShare * (stage.before_ms.value ?? 0);
  const bars = stage.bars.filter((bar) => Math.abs(bar.before_ms - bar.after_ms) >= least);
  const table =
    bars.length === 0
      ? []
      : textTable(
          [{ head: 'bar' }, { head: 'now', align: 'right' }, { head: 'then', align: 'right' }],
          bars.map(({ id, before_ms: from, after_ms: to }) => [inert(id), formatMs(from), formatMs(to)]),
          { width, indent: 4 },
        ).split('\n');
  const why = reasons(bars).flatMap(({ ids, how }) =>
    hanging('    ', inert(`${ids.join(', ')}: ${how}`), width),
  );
  return [
    ...head,
    ...table,
    ...why,
    ...stage.assumptions.flatMap((text) => hanging('    • ', inert(text), width)),
  ];
}

/** Bars that change for one reason are told together. */
function reasons(bars: Stage['bars']): { ids: string[]; how: string }[] {
  return [...new Set(bars.map(({ how }) => how))].map((how) => ({
    ids: bars.filter((bar) => bar.how === how).map(({ id }) => id),
    how,
  }));
}

/** "decode step: 9.14 ms → 2.68 ms (2.21 to 3.75 ms), 3.4 times as fast." */
export function whatIfSentence(
  { before_ms: before, after_ms: after, ...stage }: Stage,
  name: string,
): string {
  if (after.value === null) return `${name}: cannot be told: ${after.reason.text}.`;
  const from = before.value ?? 0;
  const range = after.ci95 ? ` (${formatMs(after.ci95[0])} to ${formatMs(after.ci95[1])})` : '';
  const ratio = after.value > 0 ? from / after.value : 1;
  const words =
    Math.abs(ratio - 1) < 0.005
      ? 'no change'
      : ratio > 1
        ? `${ratio.toFixed(ratio < 1.1 ? 2 : 1)} times as fast`
        : `${(1 / ratio).toFixed(1 / ratio < 1.1 ? 2 : 1)} times as long`;
  const token =
    stage.per_token_before_ms !== null && stage.per_token_after_ms !== null
      ? `; a token ${formatMs(stage.per_token_before_ms)} → ${formatMs(stage.per_token_after_ms)}`
      : '';
  return `${name}: ${formatMs(from)} →${nbsp}${formatMs(after.value)}${range}, ${words}${token}.`;
}
