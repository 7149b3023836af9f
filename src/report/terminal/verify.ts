import type { Document } from '../../model/document.js';
import type { VerifyResult } from '../../model/documents/explain.js';
import { stageNames } from '../explain-rows.js';
import { formatMs, noValue } from '../format.js';
import { errorWords, insideWords, outcomeWords, scoreSentence } from '../verify-words.js';
import { colour } from './colour.js';
import { textTable } from './table.js';
import { hanging, inert, readingWidth, withPlainSpaces } from './text.js';

/** Bars that changed by less of the stage are not shown. */
const leastShare = 0.01;

/** What `explain --verify` prints: sentences, bars before and after, and every finding with expected beside achieved. */
export function verifyText({ data, issues }: Document<VerifyResult>, columns: number): string {
  const width = readingWidth(columns);
  const name = ({ name: own, id }: VerifyResult['before']) => inert(own ?? id);
  const lines = [
    `  ${colour.bold(`${name(data.before)} → ${name(data.after)}`)}`,
    ...issues.flatMap(({ severity, text }) => hanging('  ', `${severity}: ${inert(text)}`, width)),
    ...data.sentences.flatMap((text) => hanging('  ', inert(text), width)),
    ...data.stages.flatMap((stage) => ['', ...stageLines(stage, width)]),
    '',
    ...changeLines(data, width),
  ];
  return withPlainSpaces(lines.join('\n'));
}

function stageLines(stage: VerifyResult['stages'][number], width: number): string[] {
  const whole = Math.max(stage.before_ms.value ?? 0, stage.after_ms.value ?? 0);
  const bars = stage.bars.filter((bar) => Math.abs(bar.before_ms - bar.after_ms) >= leastShare * whole);
  const rows = bars.map(({ id, before_ms: from, after_ms: to }) => [
    inert(id),
    formatMs(from),
    formatMs(to),
    formatMs(to - from),
  ]);
  const head = `${stageNames[stage.kind] ?? stage.kind}${stage.point === null ? '' : ` at ${stage.point}`}: ${formatMs(stage.achieved_ms)} achieved`;
  return [
    ...hanging('  ', head, width).map((line) => colour.bold(line)),
    ...hanging(
      '    ',
      `graded on ${stage.graded_on === 'wall' ? 'its time (W)' : 'GPU time'}: ${inert(stage.graded_why)}`,
      width,
    ),
    ...(rows.length === 0
      ? []
      : textTable(
          [
            { head: 'bar' },
            { head: 'before', align: 'right' },
            { head: 'after', align: 'right' },
            { head: 'change', align: 'right' },
          ],
          rows,
          { width, indent: 4 },
        ).split('\n')),
  ];
}

function changeLines(data: VerifyResult, width: number): string[] {
  const { changes } = data;
  const score = scoreSentence(data);
  if (changes.length === 0) return ['  Neither session has a finding.'];
  const value = (ms: number | null) => (ms === null ? noValue : formatMs(ms));
  const table = textTable(
    [
      { head: 'finding', flexible: true },
      { head: 'now' },
      { head: 'expected', align: 'right' },
      { head: 'achieved', align: 'right' },
      { head: 'error', align: 'right' },
      { head: 'in interval' },
    ],
    changes.map((one) => [
      inert(one.finding),
      outcomeWords[one.outcome],
      value(one.expected_ms),
      value(one.achieved_ms),
      errorWords(one),
      insideWords(one),
    ]),
    { width },
  );
  return [
    table,
    '',
    ...changes.flatMap(({ finding, text }) => hanging('  • ', `${inert(finding)}: ${inert(text)}`, width)),
    ...(score === null ? [] : ['', ...hanging('  ', score, width)]),
  ];
}
