import { nbsp } from '../report/format.js';
import { collapsed } from '../report/notices.js';
import { plain } from '../report/markdown/explain.js';
import type { Block, Level, Table, Text, View } from '../views/block.js';
import { explained } from './reasons.js';
import { parts, valueText } from './value.js';

/** A view as GitHub's Markdown, for pull requests and CI; names from files cannot become mark-up. */
export function markdownView(view: View, { level = 2 }: { level?: Level } = {}): string {
  const due = ({ level: own = 1 }: { level?: Level }): boolean => own <= level;
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
  switch (block.t) {
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
        ...(block.title === undefined ? [] : [{ t: 'heading' as const, text: block.title }]),
        block.behind,
      ]);
    case 'notes':
      return list(block.items.map((item) => `- ${words(item)}`));
    case 'issues':
      return list(
        collapsed([...block.issues]).map(({ severity, text }) => `- **${severity}**: ${plain(text)}`),
      );
    case 'missing':
      return [`${plain(block.what)} ${plain(block.why)}`];
    case 'commands':
      return list(block.items.map(({ command, why }) => `- \`${command}\`: ${plain(why)}`));
    case 'fold': {
      const body = blocks(block.blocks);
      return body.length === 0
        ? []
        : [`<details><summary>${plain(block.title)}</summary>`, ...body, '</details>'];
    }
  }
}

const list = (lines: readonly string[]): string[] => (lines.length === 0 ? [] : [lines.join('\n')]);

function tableText(table: Table, due: (one: { level?: Level }) => boolean): string[] {
  const { columns, rows: shown, reasons } = explained({ ...table, rows: table.rows.filter(due) });
  if (shown.length === 0) return [];
  return [
    `${words(table.title)}:`,
    [
      `| ${columns.map(({ head }) => plain(head)).join(' | ')} |`,
      `| ${columns.map(({ numeric }) => (numeric ? '---:' : '---')).join(' | ')} |`,
      ...shown.map(({ cells }) => `| ${cells.map(words).join(' | ')} |`),
    ].join('\n'),
    ...list(reasons.map((reason) => `- ${plain(reason)}`)),
  ];
}

const words = (text: Text): string =>
  parts(text)
    .map((part) => {
      if (typeof part === 'string') return plain(part);
      if ('code' in part && !part.code.includes('`')) return `\`${part.code}\``;
      const shown = plain(valueText(part));
      return 'text' in part && part.tone === 'strong' ? `**${shown}**` : shown;
    })
    .join('');
