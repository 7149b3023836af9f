import type { Document } from '../../model/document.js';
import type { WhatIfResult } from '../../model/documents/explain.js';
import { stageNames } from '../explain-rows.js';
import { formatMs, nbsp } from '../format.js';
import { plain } from './explain.js';
import { whatIfSentence } from '../what-if-words.js';

/** `explain --what-if --format md`. */
export function whatIfMarkdown({ data, issues, tool_version }: Document<WhatIfResult>): string {
  const parts = [
    `## What if: ${plain(data.change)}`,
    ...data.stages.flatMap((stage) => [
      `**${plain(whatIfSentence(stage, stageNames[stage.kind] ?? stage.kind))}**`,
      ...(stage.bars.length === 0
        ? []
        : [
            [
              '| bar | now | then | why |',
              '| --- | ---: | ---: | --- |',
              ...stage.bars.map(
                ({ id, before_ms: from, after_ms: to, how }) =>
                  `| \`${id}\` | ${formatMs(from)} | ${formatMs(to)} | ${plain(how)} |`,
              ),
            ].join('\n'),
          ]),
      ...(stage.assumptions.length === 0
        ? []
        : [stage.assumptions.map((text) => `- ${plain(text)}`).join('\n')]),
    ]),
    ...issues.filter(({ code }) => code === 'no_waterfall').map(({ text }) => plain(text)),
    `<sub>inferscope ${tool_version} · session ${plain(data.session.id)}</sub>`,
  ];
  return `${parts.join('\n\n').replaceAll(nbsp, ' ')}\n`;
}
