import { barWords } from '../vocabulary/bars.js';
import type { Document } from '../model/document.js';
import type { ExplainResult, WhatIfResult } from '../model/documents/explain.js';
import type { Block, Part, View } from './block.js';
import { explanationBlocks } from './explain-blocks.js';
import { stageHead } from './explain-series.js';
import { onPageOnly } from './on-page.js';
import { formatFactor } from '../vocabulary/format.js';

type Stage = WhatIfResult['stages'][number];

/** Bars that change by less of the stage are not shown in a terminal. */
const minShare = 0.002;

/** Times of the stages under changes that were not run. */
export function whatIfView(document: Document<WhatIfResult>, explain: Document<ExplainResult>): View {
  const { data, issues } = document;
  const refused = issues.filter(({ code }) => code === 'no_waterfall');
  return {
    command: 'explain --what-if',
    title: `${data.session.name ?? data.session.title}: what if ${data.change}`,
    document,
    session: data.session,
    lead: [
      { t: 'headline', sentences: [...explain.data.preface, ...explain.data.sentences], terminal: false },
      { t: 'issues', issues: issues.filter((one) => one.severity !== 'info' && !refused.includes(one)) },
    ],
    sections: [
      {
        id: 'what-if',
        title: `What if: ${data.change}`,
        untitled: true,
        blocks: [
          ...data.stages.flatMap(stageBlocks),
          ...refused.map(({ text }): Block => ({ t: 'missing', what: 'Not predicted.', why: text })),
        ],
      },
      ...onPageOnly(explanationBlocks(explain.data)),
    ],
  };
}

function stageBlocks(stage: Stage): Block[] {
  if (stage.after_ms.value === null) return [{ t: 'heading', text: headOf(stage) }];
  const least = minShare * (stage.before_ms.value ?? 0);
  return [
    { t: 'heading', text: headOf(stage) },
    {
      t: 'table',
      title: 'Changed waterfall bars (mean per instance)',
      columns: [
        { id: 'bar', head: 'bar' },
        { id: 'before_ms', head: 'now', numeric: true },
        { id: 'after_ms', head: 'predicted', numeric: true },
      ],
      rows: stage.bars.map(({ id, before_ms: from, after_ms: to }) => ({
        level: Math.abs(from - to) >= least ? 1 : 3,
        cells: [barWords(id).label, { n: from, unit: 'ms' }, { n: to, unit: 'ms' }],
      })),
    },
    { t: 'notes', items: [...reasons(stage), ...stage.assumptions.map((text) => `Assumed: ${text}.`)] },
  ];
}

/** Bars that change for one reason are named together. */
const reasons = ({ bars }: Stage): string[] =>
  [...new Set(bars.map(({ how }) => how))].map(
    (why) =>
      `${bars
        .filter(({ how }) => how === why)
        .map(({ id }) => barWords(id).label)
        .join(', ')}: ${why}.`,
  );

/** "Decode step: 9.14 ms → 2.68 ms (2.21 to 3.75 ms), 3.41× as fast." */
function headOf({ before_ms: before, after_ms: after, ...stage }: Stage): Part[] {
  const name = stageHead({ ...stage, name: null });
  if (after.value === null) return [`${name}: no prediction: ${after.reason.text}.`];
  const from = before.value ?? 0;
  const ratio = after.value > 0 ? from / after.value : 1;
  const words =
    Math.abs(ratio - 1) < 0.005
      ? 'no change'
      : ratio > 1
        ? `${formatFactor(ratio)} as fast`
        : `${formatFactor(1 / ratio)} as long`;
  const ms = (n: number): Part => ({ n, unit: 'ms' });
  return [
    `${name}: `,
    ms(from),
    ' → ',
    ms(after.value),
    ...(after.ci95 ? [' (', ms(after.ci95[0]), ' to ', ms(after.ci95[1]), ')'] : []),
    `, ${words}`,
    ...(stage.per_token_before_ms !== null && stage.per_token_after_ms !== null
      ? ['; a token ', ms(stage.per_token_before_ms), ' → ', ms(stage.per_token_after_ms)]
      : []),
    '.',
  ];
}
