import type { Document } from '../../model/document.js';
import type { VerifyResult } from '../../model/documents/explain.js';
import { stageNames } from '../explain-rows.js';
import { formatMs, nbsp, noValue } from '../format.js';
import { errorWords, insideWords, outcomeWords, scoreSentence } from '../verify-words.js';
import { plain } from './explain.js';

/** `explain --verify --format md`: for the pull request that made the change. */
export function verifyMarkdown({ data, issues, tool_version }: Document<VerifyResult>): string {
  const value = (ms: number | null) => (ms === null ? noValue : formatMs(ms));
  const figure = (of: VerifyResult['stages'][number]['before_ms']) => value(of.value);
  const score = scoreSentence(data);
  const parts = [
    `## Expected beside achieved: ${plain(data.before.name ?? data.before.id)} → ${plain(data.after.name ?? data.after.id)}`,
    data.sentences.map(plain).join(' '),
    ...issues.map(({ severity, text }) => `> ${severity}: ${plain(text)}`),
    ...(data.stages.length === 0
      ? []
      : [
          [
            '| stage | before | after | achieved | graded on |',
            '| --- | ---: | ---: | ---: | --- |',
            ...data.stages.map(
              (stage) =>
                `| ${stageNames[stage.kind] ?? stage.kind} | ${figure(stage.before_ms)} | ${figure(stage.after_ms)} | ${formatMs(stage.achieved_ms)} | ${plain(stage.graded_why)} |`,
            ),
          ].join('\n'),
        ]),
    ...(data.changes.length === 0
      ? []
      : [
          [
            '| finding | now | expected | achieved | error | in interval | |',
            '| --- | --- | ---: | ---: | ---: | --- | --- |',
            ...data.changes.map(
              (one) =>
                `| ${plain(one.title)} | ${outcomeWords[one.outcome]} | ${value(one.expected_ms)} | ${value(one.achieved_ms)} | ${errorWords(one)} | ${insideWords(one)} | ${plain(one.text)} |`,
            ),
          ].join('\n'),
        ]),
    ...(score === null ? [] : [`**${score}**`]),
    `<sub>inferscope ${tool_version} · sessions ${plain(data.before.id)}, ${plain(data.after.id)}</sub>`,
  ];
  return `${parts.join('\n\n').replaceAll(nbsp, ' ')}\n`;
}
