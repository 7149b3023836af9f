import type { Document, Issue } from '../../model/document.js';
import type { ExplainResult } from '../../model/documents/explain.js';
import { formatMs, formatMsColumn, formatPercent, nbsp, plural } from '../../vocabulary/format.js';
import { collapsed } from '../notices.js';
import { colour } from './colour.js';
import { textTable } from './table.js';
import { hanging, inert, readingWidth, textBar, textWidth, withPlainSpaces } from './text.js';
import type {
  Bars,
  BarSide,
  Block,
  Fact,
  FindingItem,
  Level,
  Section,
  Table,
  Text,
  Value,
  View,
} from '../../views/block.js';
import { withExplanation, withoutRepeats } from '../../views/explain.js';
import { explained } from '../reasons.js';
import { parts, plainText, valueText } from '../value.js';
import { type Detail, less, type Less, shownAt } from './less.js';

interface TerminalOptions {
  /** Columns of the terminal. */
  width: number;
  /** 1: the summary; 2: with details. */
  level?: Level;
  /** What leads: sentences, the first waterfall, the largest findings. */
  explain?: Document<ExplainResult> | null;
}

/** Lines of a summary that an explanation leads; a line after it may name a file. */
const summaryLines = 29;

/** A view as text of at most `width` columns; nothing is lost without colour. */
export function terminalView(view: View, { width, level = 1, explain = null }: TerminalOptions): string {
  const fits = (text: string) => text.split('\n').length <= summaryLines;
  const whole = viewText(view, { width, level, explain });
  if (explain === null || level > 1 || fits(whole)) return whole;
  let left: Less | null = { view, level: 0 };
  let text = whole;
  for (; left !== null && !fits(text); left = less(left))
    text = viewText(left.view, { width, explain, level: left.level });
  return text;
}

function viewText(
  view: View,
  {
    width: columns,
    level,
    explain,
  }: { width: number; level: Detail; explain: Document<ExplainResult> | null },
): string {
  const width = readingWidth(columns);
  const explanation = withExplanation({ ...view, lead: [], sections: [] }, explain);
  const own = level < 2 ? withoutRepeats(view, explain) : view;
  const title = `inferscope${nbsp}${view.document.tool_version} · ${view.command} · ${inert(view.title)}`;
  const lines = [
    ...hanging('', title, width),
    '',
    ...(view.explains === 'findings'
      ? viewLines(withExplanation(view, explain), width, level)
      : [...viewLines(explanation, width, level), '', ...viewLines(own, width, level)]),
  ];
  const once = lines.filter((line, index) => line !== '' || lines[index - 1] !== '');
  return withPlainSpaces(once.join('\n').trimEnd());
}

/** Blocks without a view's title, for what is printed among other things. */
export const terminalBlocks = (blocks: readonly Block[], columns: number): string =>
  withPlainSpaces(blocksLines(blocks, readingWidth(columns), 1).slice(1).join('\n'));

const viewLines = ({ lead, sections }: View, width: number, level: Detail): string[] => [
  ...blocksLines(lead, width, level),
  ...sections.filter(shownAt(level)).flatMap((section) => sectionLines(section, width, level)),
];

function sectionLines(section: Section, width: number, level: Detail): string[] {
  const body = blocksLines(section.blocks, width, level);
  if (body.length === 0) return [];
  // In a summary a table follows its title without a gap.
  const rows = level < 2 && body[0] === '' ? body.slice(1) : body;
  return section.untitled ? ['', ...rows] : ['', `  ${colour.bold(inert(section.title))}`, ...rows];
}

const blocksLines = (blocks: readonly Block[], width: number, level: Detail): string[] => {
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

function blockLines(block: Block, width: number, level: Detail): string[] {
  switch (block.t) {
    case 'headline':
      return headlineLines(block, width);
    case 'bars':
      return barLines(block, width, level);
    case 'findings':
      return findingLines(block, width, level);
    case 'lines':
      return block.text.split('\n').map((line) => `    ${inert(line)}`);
    case 'text':
      return hanging('  ', painted(block.text), width);
    case 'heading':
      return hanging('  ', inert(plainText(block.text)), width).map((line) => colour.bold(line));
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
      return noteLines(block.items, level < 2 ? block.brief : undefined, width);
    case 'issues':
      return issueLines(block.issues, width, level);
    case 'missing':
      return hanging('  ', `${inert(block.what)} ${inert(block.why)}`, width);
    case 'commands':
      return commandLines(block.items, width, level);
    case 'fold':
      return [`  ${inert(block.title)}`, ...blocksLines(block.blocks, width, level)];
  }
}

/** In a summary reasons in a column, where there is room for all; with details below their commands. */
function commandLines(
  items: readonly { command: string; why: string }[],
  width: number,
  level: Detail,
): string[] {
  const widest = Math.max(0, ...items.map(({ command }) => textWidth(inert(command))));
  const lines = items.map(({ command, why }) => `    ${inert(command).padEnd(widest)}  ${inert(why)}`);
  if (lines.every((line) => textWidth(line) <= width)) return lines;
  return items.flatMap(({ command, why }) => [
    `    ${inert(command)}`,
    ...(level < 2 ? [] : hanging('        ', inert(why), width)),
  ]);
}

/** Issues of a summary, by its room: without notes; the rest is counted. */
const briefIssues = { '-2': 0, '-1': 1, 0: 2, 1: 3 };

function issueLines(issues: readonly Issue[], width: number, level: Detail): string[] {
  const due = collapsed(issues).filter(({ severity }) => level > 1 || severity !== 'info');
  const shown = level === 2 || level === 3 ? due : due.slice(0, briefIssues[level]);
  if (shown.length === 0 && due.length > 0) return [`  ${plural(due.length, 'warning')} in the report`];
  return [
    ...shown.flatMap(({ severity, text }) => hanging(`  ${severityWord[severity]} `, inert(text), width)),
    ...moreLine(due.length - shown.length),
  ];
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

const noteLines = (items: readonly Text[], brief = items.length, width: number): string[] => [
  ...items.slice(0, brief).flatMap((item) => {
    // Of a list, lines hang below the text of their item.
    const [, lead = '', rest = ''] = /^(\s*(?:[-*•]\s+|\d+[.)]\s+)?)(.*)$/s.exec(painted(item)) ?? [];
    return hanging(`  ${lead}`, rest, width);
  }),
  ...moreLine(items.length - brief),
];

const moreLine = (more: number): string[] => (more > 0 ? [`  … and ${more} more`] : []);

function factLines(items: readonly { name: string; text: Text }[], width: number): string[] {
  const nameWidth = Math.max(0, ...items.map(({ name }) => textWidth(name)));
  return items.flatMap(({ name, text }) =>
    hanging(`  ${inert(name).padEnd(nameWidth)}  `, painted(text), width),
  );
}

/** Rows of a table in a summary with little room. */
const tightRows = 6;

function tableLines(table: Table, width: number, level: Detail): string[] {
  const { brief } = table;
  const due = table.rows.filter(shownAt(level));
  const {
    columns,
    rows: shown,
    reasons,
  } = explained({
    ...table,
    rows:
      level < 1
        ? due.slice(0, level < 0 ? tightRows / 2 : tightRows)
        : level < 2 && brief !== undefined
          ? due.slice(0, brief)
          : due,
  });
  const why = level < 1 ? [] : reasons.flatMap((reason) => hanging('  ', inert(reason), width));
  if (shown.length === 0) return why;
  const text = textTable(
    columns.map(({ head, numeric, wraps, drop }) => ({
      head: inert(head),
      align: numeric ? ('right' as const) : ('left' as const),
      ...(wraps ? { flexible: true } : {}),
      ...(drop === undefined ? {} : { leaveOut: drop }),
    })),
    shown.map(({ cells }) => cells.map(painted)),
    { width, named: level > 0 },
  );
  return [...text.split('\n'), ...moreLine(due.length - shown.length), ...why];
}

const barCells = 12;
const pairCells = 8;
const minBar = 4;
/** Cells of a bar's share, with the gap after it. */
const shareWidth = 9;

/** A waterfall: names, ms and their size to one scale. Of two sides both and the difference, of more their table. */
function barLines(block: Bars, width: number, level: Detail): string[] {
  const { title, sides, missing, behind } = block;
  const [first, second] = sides;
  if (!first) return [];
  return [
    ...hanging('  ', inert(plainText(title)), width).map((line) => colour.bold(line)),
    ...(level > 1 ? [''] : []),
    ...(!second
      ? sideLines(first, width, level)
      : sides.length === 2
        ? pairLines(first, second, width)
        : blockLines(behind, width, level)),
    // In a summary the first sentence says it.
    ...(missing === undefined || level < 2 ? [] : hanging('    ', inert(missing), width)),
  ];
}

function sideLines({ totals, ...all }: BarSide, width: number, level: Detail): string[] {
  const bars = (level < 2 && all.brief) || all.bars;
  const full = Math.max(...bars.map(({ ms }) => ms), 0);
  const nameWidth = Math.max(12, ...[...bars, ...totals].map(({ name }) => textWidth(inert(name)))) + 1;
  // A narrow terminal takes the gap before the numbers first, then the bars, then the notes.
  const beforeMs = 4 + nameWidth;
  const text = plainMs([...bars, ...totals]);
  const msWidth = Math.max(
    ...[...bars, ...totals].map(({ ms }) => textWidth(text(ms))),
    Math.min(9, width - beforeMs - 3),
  );
  const room = width - beforeMs - msWidth - 5;
  const shares = room - shareWidth >= minBar;
  const left = shares ? room - shareWidth : room;
  const cells = left < minBar ? 0 : Math.min(barCells, left);
  const timed = (name: string, ms: number) =>
    `    ${inert(name).padEnd(nameWidth)}${text(ms).padStart(msWidth)}${nbsp}ms`;
  const total = totals[0]?.ms ?? 0;
  const share = (ms: number) =>
    shares ? (total > 0 ? formatPercent(ms / total) : '').padStart(shareWidth - 2) + '  ' : '';
  return [
    ...bars.flatMap(({ name, ms, notes = [] }) => {
      const first = `${timed(name, ms)}  ${share(ms)}${cells === 0 ? '' : textBar(ms, full, cells).padEnd(cells)}  `;
      const said = notes.map((note) => inert(plainText(note)));
      const room = width - textWidth(first);
      const fits = (count: number) => textWidth(said.slice(0, count).join(', ')) <= room;
      const count = [2, 1].find((one) => one <= said.length && fits(one)) ?? 0;
      const line = `${first}${said.slice(0, count).join(', ')}`.trimEnd();
      // Counts are left out where there is no room; a name or a sentence stays whole, on a line of its own.
      return count === 0 && typeof notes[0] === 'string'
        ? [line, ...hanging('      ', said[0]!, width)]
        : [line];
    }),
    ...totalLines(totals, timed, level),
  ];
}

/** In a summary one line: the first, and the last in brackets. */
function totalLines(
  totals: BarSide['totals'],
  timed: (name: string, ms: number) => string,
  level: Detail,
): string[] {
  const [first, ...more] = totals.map(({ name, ms }) => timed(name, ms));
  const last = totals.at(-1);
  if (first === undefined || last === undefined) return [];
  if (level > 1 || more.length === 0) return [first, ...more];
  return [`${first}  (${formatMs(last.ms)} ${inert(last.name)})`];
}

/** Both sides to one scale, ms, and what changed. */
function pairLines(first: BarSide, second: BarSide, width: number): string[] {
  const bars = [...first.bars, ...second.bars];
  const full = Math.max(...bars.map(({ ms }) => ms), 0);
  const text = plainMs([...bars, ...first.totals, ...second.totals]);
  const change = (ms: number) => (ms > 0 && /[1-9]/.test(text(ms)) ? `+${text(ms)}` : text(ms));
  const rows = (kind: 'bars' | 'totals') =>
    first[kind].map(({ name, ms }, index) => {
      const other = second[kind][index]!.ms;
      const drawn = (of: number) => (kind === 'bars' ? textBar(of, full, pairCells).padEnd(pairCells) : '');
      return [inert(name), text(ms), drawn(ms), text(other), drawn(other), change(other - ms)];
    });
  const right = (head: string) => ({ head, align: 'right' as const });
  return textTable(
    [
      { head: 'ms', flexible: true },
      right(inert(first.label)),
      { head: '', leaveOut: 0 },
      right(inert(second.label)),
      { head: '', leaveOut: 1 },
      right('change'),
    ],
    [...rows('bars'), ...rows('totals')],
    { width, indent: 4 },
  ).split('\n');
}

/** Milliseconds without their unit, all with the decimals that suit the largest of `shown`. */
const plainMs =
  (shown: readonly { ms: number }[]) =>
  (ms: number): string =>
    formatMsColumn([ms, ...shown.map((one) => one.ms)])[0]!;

function findingLines(
  { items, brief }: { items: readonly FindingItem[]; brief: number },
  width: number,
  level: Detail,
): string[] {
  const shown = level > 1 ? items : items.filter(({ minor }) => !minor).slice(0, brief);
  return shown.flatMap((item, index) => [
    ...(index === 0 || level < 2 ? [] : ['']),
    ...titleLines(item, index + 1, width),
    ...(level > 1
      ? factsOf(item.facts, level).flatMap((fact) => findingFact(fact, width))
      : briefFinding(item, index === 0, width)),
    ...(level > 1 ? blocksLines(item.blocks, width, level) : []),
  ]);
}

/** What is at stake is below the title; what is expected is among what follows. */
function titleLines(
  { severity, title, gain, expected }: FindingItem,
  index: number,
  width: number,
): string[] {
  const paint = severity === 'high' ? colour.red : severity === 'medium' ? colour.yellow : colour.bold;
  const stake = expected === '' ? inert(plainText(gain)) : '';
  return [
    ...hanging(`  ${String(index).padEnd(3)}`, inert(title), width).map(paint),
    ...(stake === '' ? [] : [`     ${colour.bold(stake)}`]),
  ];
}

/** Below a title of a summary: what is expected, and of the first finding the change and how to make it. */
function briefFinding({ change, expected, example }: FindingItem, first: boolean, width: number): string[] {
  const typed = example?.split('\n') ?? [];
  return [
    ...(first ? hanging('     ', inert(change), width) : []),
    ...(first && typed.length === 1 && textWidth(typed[0]!) + 5 <= width ? [`     ${inert(typed[0]!)}`] : []),
    ...hanging('     ', inert(plainText(expected)), width).filter((text) => text.trim() !== ''),
  ];
}

const factsOf = (facts: readonly Fact[], level: Detail): readonly Fact[] => facts.filter(shownAt(level));

function findingFact(fact: Fact, width: number): string[] {
  if ('lines' in fact) return fact.lines.split('\n').map((line) => `                 ${inert(line)}`);
  return hanging(`     ${`${fact.name}:`.padEnd(12)}`, painted(fact.text), width);
}

/** Sentences, then a row each, its cells below each other; the third is left out first where a terminal is narrow. */
function headlineLines({ sentences, rows = [] }: Extract<Block, { t: 'headline' }>, width: number): string[] {
  const said = sentences.flatMap((sentence) => hanging('  ', inert(sentence), width));
  if (rows.length === 0) return said;
  const cells = rows.map((row) => row.map((cell) => inert(plainText(cell))));
  const wide = cells[0]!.map((_, column) => Math.max(...cells.map((row) => textWidth(row[column] ?? ''))));
  const used = wide.map((one, column) => ({ column, one })).filter(({ one }) => one > 0);
  const fits = (columns: typeof used) => columns.reduce((sum, { one }) => sum + one + 3, -1) <= width;
  const shown = fits(used) ? used : used.filter(({ column }) => column !== 2);
  const lines = cells.flatMap((row) => {
    if (fits(shown)) {
      const line = shown.map(({ column, one }) => (row[column] ?? '').padEnd(one)).join('   ');
      return [`  ${line.trimEnd()}`];
    }
    return hanging('  ', row.filter((cell) => cell !== '').join(' · '), width);
  });
  return [...said, ...(said.length > 0 ? [''] : []), ...lines.map((line) => colour.bold(line))];
}

/** Text with its tones in colour, on one line. */
const painted = (text: Text): string =>
  parts(text)
    .map((part) => (typeof part === 'string' ? inert(part) : tone(part, inert(valueText(part)))))
    .join('');

function tone(value: Value, text: string): string {
  if (!('tone' in value)) return text;
  if (value.tone === 'fault') return colour.yellow(text);
  if (value.tone === 'strong') return colour.bold(text);
  return value.tone === 'dim' ? colour.dim(text) : text;
}
