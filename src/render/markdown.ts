import { nbsp } from '../vocabulary/format.js';
import { severityLabels } from '../vocabulary/severities.js';
import { mergeIssues } from './notices.js';
import type { Block, FindingItem, Level, Table, Text, View } from '../views/block.js';
import { commandParts } from '../views/text.js';
import { tableToDraw } from './reasons.js';
import { parts, plainText, valueText } from './value.js';

/** A view as GitHub's Markdown, for pull requests and CI; names from files cannot become mark-up. */
export function markdownView(view: View, { level = 2 }: { level?: Level } = {}): string {
  const isShown = ({
    level: blockLevel = 1,
    summary = false,
    pages = true,
  }: {
    level?: Level;
    summary?: boolean;
    pages?: boolean;
  }): boolean => blockLevel <= level && !summary && pages;
  const blocks = (list: readonly Block[]): string[] =>
    list.filter(isShown).flatMap((block) => blockText(block, isShown, blocks));
  const text = [
    `## inferscope ${view.command}: ${escapeMarkdown(view.title)}`,
    ...blocks(view.lead),
    ...view.sections.filter(isShown).flatMap((section) => {
      const body = blocks(section.blocks);
      return body.length === 0 ? [] : [`### ${escapeMarkdown(section.title)}`, ...body];
    }),
    `<sub>inferscope ${view.document.tool_version} · session ${escapeMarkdown(view.session.id ?? 'not saved')} · ${view.session.started_at}</sub>`,
  ].join('\n\n');
  return `${text.replaceAll(nbsp, ' ')}\n`;
}

function blockText(
  block: Block,
  isShown: (one: { level?: Level }) => boolean,
  blocks: (list: readonly Block[]) => string[],
): string[] {
  switch (block.type) {
    case 'headline':
      return [
        ...(block.sentences.length > 0 ? [block.sentences.map(escapeMarkdown).join(' ')] : []),
        ...asBlock(
          (block.rows ?? []).map(([name = '', ...cells]) => {
            const known = cells.map(markdownOf).filter((text) => text !== '');
            return `- **${markdownOf(name)}**: ${known.join(' · ')}`;
          }),
        ),
      ];
    case 'bars':
      return [`#### ${markdownOf(block.title)}`, ...blocks([block.behind])];
    case 'findings':
      return block.items.map((item, index) => findingText(item, index, { isShown, blocks }));
    case 'lines':
      return [fence(block.text)];
    case 'text':
      return [markdownOf(block.text)];
    case 'heading':
      return [`#### ${markdownOf(block.text)}`];
    case 'facts':
      return asBlock(
        block.items.map(({ name, text }) => `- **${escapeMarkdown(name)}**: ${markdownOf(text)}`),
      );
    case 'cards':
      return asBlock(
        block.cards.map(
          ({ label, value, note }) =>
            `- **${escapeMarkdown(label)}**: ${markdownOf(value)}${note === undefined ? '' : ` ${markdownOf(note)}`}`,
        ),
      );
    case 'table':
      return tableText(block, isShown);
    case 'chart':
      return blocks([
        ...(block.title === undefined ? [] : [{ type: 'heading' as const, text: block.title }]),
        block.behind,
      ]);
    case 'notes':
      return asBlock(block.items.map((item) => `- ${markdownOf(item)}`));
    case 'issues':
      return asBlock(
        mergeIssues(block.issues).map(
          ({ severity, text }) => `- **${severityLabels[severity]}**: ${escapeMarkdown(text)}`,
        ),
      );
    case 'missing':
      return [`${escapeMarkdown(block.what)} ${escapeMarkdown(block.why)}`];
    case 'commands':
      return asBlock(
        block.items.map(
          ({ command, why }) => `- ${markdownOf(commandParts(command))}: ${escapeMarkdown(why)}`,
        ),
      );
    case 'fold': {
      const body = blocks(block.blocks);
      return body.length === 0
        ? []
        : [`<details><summary>${escapeLine(block.title)}</summary>`, ...body, '</details>'];
    }
  }
}

function findingText(
  { title, severity, gain, facts, blocks: more }: FindingItem,
  index: number,
  {
    isShown,
    blocks,
  }: {
    isShown: (block: { level?: Level }) => boolean;
    blocks: (list: readonly Block[]) => string[];
  },
): string {
  const tail = plainText(gain) === '' ? '' : ` — ${escapeLine(plainText(gain))}`;
  return [
    `<details><summary><b>${index + 1}. ${escapeLine(title)}</b> (${severity})${tail}</summary>`,
    '',
    ...facts
      .filter(isShown)
      .flatMap((fact) =>
        'lines' in fact
          ? ['', fence(fact.lines), '']
          : [`- **${escapeMarkdown(fact.name)}:** ${markdownOf(fact.text)}`],
      ),
    ...blocks(more).flatMap((text) => ['', text]),
    '',
    '</details>',
  ].join('\n');
}

/** Escapes names from files, so that they cannot become mark-up, mentions or links. */
function escapeMarkdown(text: string): string {
  return escapeLine(text).replaceAll(/[\\`*_{}[\]#|]/g, (sign) => `\\${sign}`);
}

/** Escapes text for one line of HTML, such as `<summary>`, which an empty line would end and in which Markdown has no effect. */
const escapeLine = (text: string): string =>
  oneLine(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('@', '@\u200b');

const oneLine = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ');

const codeSpan = (code: string): string =>
  code.includes('`') ? escapeMarkdown(code) : `\`${oneLine(code)}\``;

/** A code fence longer than any run of backticks inside. */
function fence(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const ticks = '`'.repeat(longest + 1);
  return `${ticks}\n${text}\n${ticks}`;
}

const asBlock = (lines: readonly string[]): string[] => (lines.length === 0 ? [] : [lines.join('\n')]);

function tableText(table: Table, isShown: (block: { level?: Level }) => boolean): string[] {
  const { columns, rows: shown, notes } = tableToDraw({ ...table, rows: table.rows.filter(isShown) });
  const why = asBlock(notes().map((note) => `- ${escapeMarkdown(note)}`));
  if (shown.length === 0) return why;
  return [
    `${markdownOf(table.title)}:`,
    [
      `| ${columns.map(({ head }) => escapeMarkdown(head)).join(' | ')} |`,
      `| ${columns.map(({ numeric }) => (numeric ? '---:' : '---')).join(' | ')} |`,
      ...shown.map(({ cells }) => `| ${cells.map(markdownOf).join(' | ')} |`),
    ].join('\n'),
    ...why,
  ];
}

const markdownOf = (text: Text): string =>
  parts(text)
    .map((part) => {
      if (typeof part === 'string') return escapeMarkdown(part);
      if ('code' in part) return codeSpan(part.code);
      if ('link' in part && /^https?:/.test(part.link))
        return `[${escapeMarkdown(part.text)}](${part.link.replaceAll(/[()\s]/g, encodeURIComponent)})`;
      const shown = escapeMarkdown(valueText(part));
      return 'tone' in part && part.tone === 'strong' ? `**${shown}**` : shown;
    })
    .join('');
