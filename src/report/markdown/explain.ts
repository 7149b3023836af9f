import type { Document } from '../../model/document.js';
import type { ExplainResult, Finding, StageWaterfall } from '../../model/documents/explain.js';
import { headlineTime, isProfiled } from '../../model/headline-time.js';
import { formatMs, formatPercent, nbsp } from '../format.js';
import { withheldWords } from '../../model/explain-words.js';
import { largestBars, leadingStages, shownBars, stageName, gainWords, timeLines } from '../explain-rows.js';

/** `explain --format md`: for the description of a pull request, or a comment of its CI. */
export function explainMarkdown(
  { data, tool_version }: Document<ExplainResult>,
  { stage = null, limit = 10 }: { stage?: string | null; limit?: number } = {},
): string {
  const { full, brief } =
    stage === null
      ? leadingStages(data)
      : { full: data.stages.filter(({ kind }) => kind === stage), brief: [] };
  const found = data.findings.filter((one) => stage === null || one.stage === null || one.stage === stage);
  const withheld = withheldWords(data);
  const parts = [
    `## inferscope explain: ${plain(data.session.name ?? data.session.title)}`,
    data.sentences.map(plain).join(' '),
    ...full.map(waterfall),
    ...(brief.length > 0 ? [briefStages(brief)] : []),
    ...data.without_waterfall.map(
      ({ stage: kind, reason }) => `No waterfall${kind === null ? '' : ` of ${kind}`}: ${plain(reason)}.`,
    ),
    found.length === 0 ? 'No findings.' : `### Findings`,
    ...found.slice(0, limit).map(finding),
    ...(found.length > limit ? [`… and ${found.length - limit} more.`] : []),
    ...(withheld === null ? [] : [plain(withheld)]),
    `<sub>inferscope ${tool_version} · session ${plain(data.session.id)} · ${data.session.started_at}</sub>`,
  ];
  return `${parts.join('\n\n').replaceAll(nbsp, ' ')}\n`;
}

function waterfall(stage: StageWaterfall): string {
  const headline = headlineTime(stage);
  const rows = shownBars(stage).map(
    ({ id, label, ms, share }) =>
      `| \`${id}\` | ${plain(label)} | ${formatMs(ms)} | ${formatPercent(share)} |`,
  );
  return [
    `### ${plain(stageName(stage))}: ${formatMs(headline.value ?? 0)}${isProfiled(stage) ? ' under the profiler' : ''} (n = ${stage.instances})`,
    '',
    '| bar | what it is | ms | share |',
    '| --- | --- | ---: | ---: |',
    ...rows,
    ...timeLines(stage).map(({ name, ms }) => `| **${name}** | | **${formatMs(ms)}** | |`),
    ...(stage.roofline_ms.value === null
      ? ['', `No roofline: ${plain(stage.roofline_ms.reason.text)}.`]
      : []),
  ].join('\n');
}

function briefStages(stages: readonly StageWaterfall[]): string {
  const rows = stages.map((stage) => {
    const bars = largestBars(stage).map(({ id, share }) => `\`${id}\` ${formatPercent(share)}`);
    return `| ${plain(stageName(stage))} | ${formatMs(headlineTime(stage).value ?? 0)} | ${stage.instances} | ${bars.join(', ')} |`;
  });
  return ['| other stages | time | n | most of it |', '| --- | ---: | ---: | --- |', ...rows].join('\n');
}

function finding(one: Finding, index: number): string {
  const gain = one.gain && one.gain.expected_ms > 0 ? ` — ${gainWords(one.gain)}` : '';
  return [
    `<details><summary><b>${index + 1}. ${html(one.title)}</b> (${one.severity})${gain}</summary>`,
    '',
    ...one.evidence.flatMap(({ text, sql }) => [
      `- ${plain(text)}`,
      ...(sql === null ? [] : ['', fence(sql, 'sql'), '']),
    ]),
    `- **Cause:** ${plain(one.cause)}`,
    `- **Change:** ${plain(one.change.text)}`,
    ...(one.change.example === null ? [] : ['', fence(one.change.example, ''), '']),
    ...(one.gain ? [`- **Assumption:** ${plain(one.gain.assumption)}`] : []),
    ...(one.hidden_by === null
      ? []
      : [`- What it costs is counted in \`${one.hidden_by}\`, or shows only once that is mended.`]),
    `- **Check:** ${code(one.check)}`,
    '',
    '</details>',
  ].join('\n');
}

/** Names come from files: they must not become mark-up, mentions or links. */
export function plain(text: string): string {
  return html(text.replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ')).replaceAll(/[\\`*_{}[\]#|]/g, (sign) => `\\${sign}`);
}

const html = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('@', '@\u200b');

/** A fence longer than any run of backticks inside. */
function fence(text: string, language: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const ticks = '`'.repeat(longest + 1);
  return `${ticks}${language}\n${text}\n${ticks}`;
}

const code = (text: string): string =>
  text.includes('`') ? plain(text) : `\`${text.replaceAll('\n', ' ')}\``;
