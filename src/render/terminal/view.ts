import type { Document } from '../../model/document.js';
import type { ExplainResult } from '../../model/documents/explain.js';
import { nbsp } from '../../report/format.js';
import { collapsed } from '../../report/notices.js';
import { colour } from '../../report/terminal/colour.js';
import { explainBrief } from '../../report/terminal/explain.js';
import { textTable } from '../../report/terminal/table.js';
import { hanging, inert, readingWidth, textWidth, withPlainSpaces } from '../../report/terminal/text.js';
import type { Block, Level, Section, Table, Text, Value, View } from '../../views/block.js';
import { explained } from '../reasons.js';
import { parts, plainText, valueText } from '../value.js';

export interface TerminalOptions {
  /** Columns of the terminal. */
  width: number;
  /** 1: the summary; 2: with details. */
  level?: Level;
  /** What leads: sentences, the first waterfall, the largest findings. */
  explain?: Document<ExplainResult> | null;
}

/** A view as text of at most `width` columns; nothing is lost without colour. */
export function terminalView(
  view: View,
  { width: columns, level = 1, explain = null }: TerminalOptions,
): string {
  const width = readingWidth(columns);
  const title = `inferscope${nbsp}${view.document.tool_version} · ${view.command} · ${inert(view.title)}`;
  const lines = [
    ...hanging('', title, width),
    '',
    ...(explain ? [explainBrief(explain, width), ''] : []),
    ...blocksLines(view.lead, width, level),
    ...view.sections.filter(shownAt(level)).flatMap((section) => sectionLines(section, width, level)),
  ];
  const once = lines.filter((line, index) => line !== '' || lines[index - 1] !== '');
  return withPlainSpaces(once.join('\n'));
}

const shownAt =
  (level: Level) =>
  ({ level: own = 1 }: { level?: Level }): boolean =>
    own <= level;

function sectionLines(section: Section, width: number, level: Level): string[] {
  const body = blocksLines(section.blocks, width, level);
  return body.length === 0 ? [] : ['', `  ${colour.bold(inert(section.title))}`, ...body];
}

const blocksLines = (blocks: readonly Block[], width: number, level: Level): string[] => {
  const drawn = blocks
    .filter(shownAt(level))
    .map((block) => ({ t: block.t, lines: blockLines(block, width, level) }))
    .filter(({ lines }) => lines.length > 0);
  return drawn.flatMap(({ t, lines }, index) => {
    const before = drawn[index - 1]?.t;
    return tight.has(t) && (before === undefined || tight.has(before)) ? lines : ['', ...lines];
  });
};

/** Blocks that follow one another, or a title, without a gap. */
const tight: ReadonlySet<Block['t']> = new Set(['text', 'facts']);

function blockLines(block: Block, width: number, level: Level): string[] {
  switch (block.t) {
    case 'text':
      return hanging('  ', painted(block.text), width);
    case 'heading':
      return hanging('  ', plainText(block.text), width).map((line) => colour.bold(line));
    case 'facts':
      return factLines(block.items, width);
    case 'cards':
      return factLines(
        block.cards.map(({ label, value, note }) => ({
          name: label,
          text: note === undefined ? value : [...parts(value), ' ', ...parts(note)],
        })),
        width,
      );
    case 'table':
      return tableLines(block, width, level);
    case 'chart':
      return [
        ...(block.title === undefined
          ? []
          : [...blockLines({ t: 'heading', text: block.title }, width, level), '']),
        ...blockLines(block.behind, width, level),
      ];
    case 'notes':
      return block.items.flatMap((item) => hanging('  ', painted(item), width));
    case 'issues':
      return collapsed([...block.issues])
        .filter(({ severity }) => level > 1 || severity !== 'info')
        .flatMap(({ severity, text }) => hanging(`  ${severityWord[severity]} `, inert(text), width));
    case 'missing':
      return hanging('  ', `${inert(block.what)} ${inert(block.why)}`, width);
    case 'commands':
      return block.items.flatMap(({ command, why }) => [
        `    ${inert(command)}`,
        ...hanging('        ', inert(why), width),
      ]);
    case 'fold':
      return [`  ${inert(block.title)}`, ...blocksLines(block.blocks, width, level)];
  }
}

const severityWord = {
  get error() {
    return colour.red('error:');
  },
  get warning() {
    return colour.yellow('warning:');
  },
  info: 'note:',
};

function factLines(items: readonly { name: string; text: Text }[], width: number): string[] {
  const nameWidth = Math.max(0, ...items.map(({ name }) => textWidth(name)));
  return items.flatMap(({ name, text }) =>
    hanging(`  ${inert(name).padEnd(nameWidth)}  `, painted(text), width),
  );
}

function tableLines(table: Table, width: number, level: Level): string[] {
  const { brief } = table;
  const due = table.rows.filter(shownAt(level));
  const {
    columns,
    rows: shown,
    reasons,
  } = explained({
    ...table,
    rows: level === 1 && brief !== undefined ? due.slice(0, brief) : due,
  });
  if (shown.length === 0) return [];
  const text = textTable(
    columns.map(({ head, numeric, wraps, drop }) => ({
      head: inert(head),
      align: numeric ? ('right' as const) : ('left' as const),
      ...(wraps ? { flexible: true } : {}),
      ...(drop === undefined ? {} : { leaveOut: drop }),
    })),
    shown.map(({ cells }) => cells.map(painted)),
    { width },
  );
  const more = due.length - shown.length;
  return [
    ...text.split('\n'),
    ...(more > 0 ? [`  … and ${more} more`] : []),
    ...reasons.flatMap((reason) => hanging('  ', inert(reason), width)),
  ];
}

/** Text with its tones in colour, on one line. */
const painted = (text: Text): string =>
  parts(text)
    .map((part) => (typeof part === 'string' ? inert(part) : tone(part, inert(valueText(part)))))
    .join('');

function tone(value: Value, text: string): string {
  if (!('text' in value)) return text;
  if (value.tone === 'fault') return colour.yellow(text);
  if (value.tone === 'strong') return colour.bold(text);
  return value.tone === 'dim' ? colour.dim(text) : text;
}
