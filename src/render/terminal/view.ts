import type { Document } from '../../model/document.js';
import type { ExplainResult } from '../../model/documents/explain.js';
import { asTyped } from '../../model/program-name.js';
import type { Block, Level, Section, View } from '../../views/block.js';
import { withExplanation, withoutRepeats, withoutStatedIssues } from '../../views/explain.js';
import { nbsp } from '../../vocabulary/format.js';
import { parts, plainText } from '../value.js';
import { barLines } from './bars.js';
import { color } from './color.js';
import { commandLines, factLines } from './facts.js';
import { findingLines } from './findings.js';
import { headlineLines } from './headline.js';
import { type Detail, shorter, type DetailedView, shownAt } from './less.js';
import { issueLines, noteLines } from './notes.js';
import { coloredText } from './colored-text.js';
import { tableLines } from './table-block.js';
import { hanging, inert, readingWidth, withPlainSpaces } from './text.js';

interface TerminalOptions {
  /** Columns of the terminal. */
  width: number;
  /** 1: the summary; 2: with details. */
  level?: Level;
  /** Explanation shown first: sentences, the first waterfall, the largest findings. */
  explain?: Document<ExplainResult> | null;
}

/** Maximum lines of a summary with an explanation; two lines after it name the page of `ui` and the report. */
const summaryLines = 28;

/** A view as text of at most `width` columns; colors carry no extra information. */
export function terminalView(view: View, { width, level = 1, explain = null }: TerminalOptions): string {
  const fits = (text: string) => text.split('\n').length <= summaryLines;
  const allText = viewText(view, { width, level, explain });
  if (explain === null || level > 1 || fits(allText)) return allText;
  const [requested, others] = [true, false].map((isRequested) =>
    view.sections.filter((section) => (section.requested ?? false) === isRequested),
  ) as [Section[], Section[]];
  let remaining: DetailedView | null = { view: { ...view, sections: others }, level: 0 };
  let text = allText;
  for (; remaining !== null && !fits(text); remaining = shorter(remaining))
    text = viewText(remaining.view, { width, explain, level: remaining.level });
  const table = viewLines(
    withoutRepeats({ ...view, lead: [], sections: requested }, explain),
    readingWidth(width),
    1,
  );
  return [text, ...(table.length === 0 ? [] : [printed(table)])].join('\n');
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
  const shown = level < 2 ? withoutRepeats(view, explain) : withoutStatedIssues(view, explain);
  const title = `inferscope${nbsp}${view.document.tool_version} · ${view.command} · ${oneLine(inert(view.title))}`;
  const lines = [
    ...hanging('', title, width),
    '',
    ...(view.explains === 'findings'
      ? viewLines(withExplanation(view, explain), width, level)
      : [...viewLines(explanation, width, level), '', ...viewLines(shown, width, level)]),
  ];
  const once = lines.filter((line, index) => line !== '' || lines[index - 1] !== '');
  return printed(once);
}

/** A title from a command may have line breaks. */
const oneLine = (text: string): string => text.replaceAll(/\s*\n\s*/g, ' ');

const printed = (lines: readonly string[]): string => asTyped(withPlainSpaces(lines.join('\n').trimEnd()));

/** Blocks without a view's title, for output between other text. */
export const terminalBlocks = (blocks: readonly Block[], columns: number): string =>
  asTyped(withPlainSpaces(blocksLines(blocks, readingWidth(columns), 1).slice(1).join('\n')));

const viewLines = ({ lead, sections }: View, width: number, level: Detail): string[] => [
  ...blocksLines(lead, width, level),
  ...sections.filter(shownAt(level)).flatMap((section) => sectionLines(section, width, level)),
];

function sectionLines(section: Section, width: number, level: Detail): string[] {
  const body = blocksLines(section.blocks, width, level);
  if (body.length === 0) return [];
  // In a summary a table follows its title without an empty line.
  const rows = level < 2 && body[0] === '' ? body.slice(1) : body;
  return section.untitled ? ['', ...rows] : ['', `  ${color.bold(inert(section.title))}`, ...rows];
}

const blocksLines = (blocks: readonly Block[], width: number, level: Detail): string[] => {
  const drawn = blocks
    .filter(shownAt(level))
    .map((block) => ({ type: block.type, lines: blockLines(block, width, level) }))
    .filter(({ lines }) => lines.length > 0);
  return drawn.flatMap(({ type, lines }, index) => {
    const before = drawn[index - 1]?.type;
    return tight.has(type) && (before === undefined || tight.has(before)) ? lines : ['', ...lines];
  });
};

/** Blocks that follow each other, or a title, without an empty line. */
const tight: ReadonlySet<Block['type']> = new Set(['text', 'facts']);

function blockLines(block: Block, width: number, level: Detail): string[] {
  switch (block.type) {
    case 'headline':
      return headlineLines(block, width);
    case 'bars':
      return barLines(block, width, level, (behind) => blockLines(behind, width, level));
    case 'findings':
      return findingLines(block, width, level, (blocks) => blocksLines(blocks, width, level));
    case 'lines':
      return block.text.split('\n').map((line) => `    ${inert(line)}`);
    case 'text':
      return hanging('  ', coloredText(block.text), width);
    case 'heading':
      return hanging('  ', inert(plainText(block.text)), width).map((line) => color.bold(line));
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
          : [...blockLines({ type: 'heading', text: block.title }, width, level), '']),
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
