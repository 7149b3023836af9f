import { nbsp } from '../vocabulary/format.js';
import { collapsed } from './notices.js';
import type { Block, FindingItem, Level, Table, Text, View } from '../views/block.js';
import { explained } from './reasons.js';
import { parts, plainText, valueText } from './value.js';

/** A view as GitHub's Markdown, for pull requests and CI; names from files cannot become mark-up. */
export function markdownView(view: View, { level = 2 }: { level?: Level } = {}): string {
  const due = ({ level: blockLevel = 1, summary = false }: { level?: Level; summary?: boolean }): boolean =>
    blockLevel <= level && !summary;
  const blocks = (list: readonly Block[]): string[] =>
    list.filter(due).flatMap((block) => blockText(block, due, blocks));
  const text = [
    `## inferscope ${view.command}: ${plain(view.title)}`,
    ...blocks(view.lead),
    ...view.sections.filter(due).flatMap((section) => {
      const body = blocks(section.blocks);
      return body.length === 0 ? [] : [`### ${plain(section.title)}`, ...body];
    }),
    `<sub>inferscope ${view.document.tool_version} · session ${plain(view.session.id ?? 'not saved')} · ${view.session.started_at}</sub>`,
  ].join('\n\n');
  return `${text.replaceAll(nbsp, ' ')}\n`;
}

function blockText(
  block: Block,
  due: (one: { level?: Level }) => boolean,
  blocks: (list: readonly Block[]) => string[],
): string[] {
  switch (block.type) {
    case 'headline':
      return [
        ...(block.sentences.length > 0 ? [block.sentences.map(plain).join(' ')] : []),
        ...list(
          (block.rows ?? []).map(([name = '', ...cells]) => {
            const known = cells.map(words).filter((text) => text !== '');
            return `- **${words(name)}**: ${known.join(' · ')}`;
          }),
        ),
      ];
    case 'bars':
      return [`#### ${words(block.title)}`, ...blocks([block.behind])];
    case 'findings':
      return block.items.map((item, index) => findingText(item, index, { due, blocks }));
    case 'lines':
      return [fence(block.text)];
    case 'text':
      return [words(block.text)];
    case 'heading':
      return [`#### ${words(block.text)}`];
    case 'facts':
      return list(block.items.map(({ name, text }) => `- **${plain(name)}**: ${words(text)}`));
    case 'cards':
      return list(
        block.cards.map(
          ({ label, value, note }) =>
            `- **${plain(label)}**: ${words(value)}${note === undefined ? '' : ` ${words(note)}`}`,
        ),
      );
    case 'table':
      return tableText(block, due);
    case 'chart':
      return blocks([
        ...(block.title === undefined ? [] : [{ type: 'heading' as const, text: block.title }]),
        block.behind,
      ]);
    case 'notes':
      return list(block.items.map((item) => `- ${words(item)}`));
    case 'issues':
      return list(collapsed(block.issues).map(({ severity, text }) => `- **${severity}**: ${plain(text)}`));
    case 'missing':
      return [`${plain(block.what)} ${plain(block.why)}`];
    case 'commands':
      return list(block.items.map(({ command, why }) => `- ${codeSpan(command)}: ${plain(why)}`));
    case 'fold': {
      const body = blocks(block.blocks);
      return body.length === 0
        ? []
        : [`<details><summary>${html(block.title)}</summary>`, ...body, '</details>'];
    }
  }
}

function findingText(
  { title, severity, gain, facts, blocks: more }: FindingItem,
  index: number,
  {
    due,
    blocks,
  }: {
    due: (block: { level?: Level }) => boolean;
    blocks: (list: readonly Block[]) => string[];
  },
): string {
  const tail = plainText(gain) === '' ? '' : ` — ${html(plainText(gain))}`;
  return [
    `<details><summary><b>${index + 1}. ${html(title)}</b> (${severity})${tail}</summary>`,
    '',
    ...facts
      .filter(due)
      .flatMap((fact) =>
        'lines' in fact ? ['', fence(fact.lines), ''] : [`- **${plain(fact.name)}:** ${words(fact.text)}`],
      ),
    ...blocks(more).flatMap((text) => ['', text]),
    '',
    '</details>',
  ].join('\n');
}

/** Escapes names from files, so that they cannot become mark-up, mentions or links. */
function plain(text: string): string {
  return html(text).replaceAll(/[\\`*_{}[\]#|]/g, (sign) => `\\${sign}`);
}

/** Escapes text for one line of HTML, such as `<summary>`, which an empty line would end and in which Markdown has no effect. */
const html = (text: string): string =>
  oneLine(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('@', '@\u200b');

const oneLine = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ');

const codeSpan = (code: string): string => (code.includes('`') ? plain(code) : `\`${oneLine(code)}\``);

/** A code fence longer than any run of backticks inside. */
function fence(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const ticks = '`'.repeat(longest + 1);
  return `${ticks}\n${text}\n${ticks}`;
}

const list = (lines: readonly string[]): string[] => (lines.length === 0 ? [] : [lines.join('\n')]);

function tableText(table: Table, due: (block: { level?: Level }) => boolean): string[] {
  const { columns, rows: shown, notes } = explained({ ...table, rows: table.rows.filter(due) });
  const why = list(notes().map((note) => `- ${plain(note)}`));
  if (shown.length === 0) return why;
  return [
    `${words(table.title)}:`,
    [
      `| ${columns.map(({ head }) => plain(head)).join(' | ')} |`,
      `| ${columns.map(({ numeric }) => (numeric ? '---:' : '---')).join(' | ')} |`,
      ...shown.map(({ cells }) => `| ${cells.map(words).join(' | ')} |`),
    ].join('\n'),
    ...why,
  ];
}

const words = (text: Text): string =>
  parts(text)
    .map((part) => {
      if (typeof part === 'string') return plain(part);
      if ('code' in part) return codeSpan(part.code);
      if ('link' in part && /^https?:/.test(part.link))
        return `[${plain(part.text)}](${part.link.replaceAll(/[()\s]/g, encodeURIComponent)})`;
      const shown = plain(valueText(part));
      return 'tone' in part && part.tone === 'strong' ? `**${shown}**` : shown;
    })
    .join('');
