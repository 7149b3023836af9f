import { barWords } from '../vocabulary/bars.js';
import type { Document } from '../model/document.js';
import type { ExplainResult, WhatIfResult } from '../model/documents/explain.js';
import type { Block, View } from './block.js';
import { explanationBlocks } from './explain-blocks.js';
import { onPageOnly } from './on-page.js';
import { isShownChange, partOfTime, whatIfHead, whatIfNotes, withoutPrediction } from './what-if-bars.js';

type Stage = WhatIfResult['stages'][number];

/** Predicted times of the stages under changes that were not run. */
export function whatIfView(document: Document<WhatIfResult>, explain: Document<ExplainResult>): View {
  const { data, issues } = document;
  const notPredicted = issues.filter(({ code }) => code === 'no_waterfall');
  return {
    command: 'explain --what-if',
    title: `${data.session.name ?? data.session.title}: what if ${data.change}`,
    document,
    session: data.session,
    lead: [
      { type: 'headline', sentences: [...explain.data.preface, ...explain.data.sentences], terminal: false },
      {
        type: 'issues',
        issues: issues.filter((issue) => issue.severity !== 'info' && !notPredicted.includes(issue)),
      },
    ],
    sections: [
      {
        id: 'what-if',
        title: `What if: ${data.change}`,
        untitled: true,
        blocks: [
          ...data.stages.flatMap(stageBlocks),
          ...withoutPrediction(data.stages).map((text): Block => ({ type: 'heading', text })),
          ...notPredicted.map(({ text }): Block => ({ type: 'missing', what: 'Not predicted.', why: text })),
        ],
      },
      ...onPageOnly(explanationBlocks(explain.data, { whatIf: data })),
    ],
  };
}

function stageBlocks(stage: Stage): Block[] {
  if (stage.after_ms.value === null) return [];
  return [
    { type: 'heading', text: whatIfHead(stage) },
    {
      type: 'table',
      title: 'Changed waterfall bars (mean per instance)',
      columns: [
        { id: 'bar', head: 'bar' },
        { id: 'before_ms', head: 'now', numeric: true },
        { id: 'after_ms', head: 'predicted', numeric: true },
      ],
      rows: stage.bars.map((bar) => ({
        level: isShownChange(bar, stage.before_ms) ? 1 : 3,
        cells: [
          barWords(bar.id).label,
          partOfTime(bar.before_ms, stage.before_ms),
          partOfTime(bar.after_ms, stage.before_ms),
        ],
      })),
    },
    whatIfNotes(stage),
  ];
}
