import type { Document } from '../../model/document.js';
import type { WhatIfResult } from '../../model/documents/explain.js';
import { stageNames } from '../explain-rows.js';
import { formatMs } from '../format.js';
import { colour } from './colour.js';
import { textTable } from './table.js';
import { hanging, inert, readingWidth, withPlainSpaces } from './text.js';
import { whatIfSentence } from '../what-if-words.js';

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
