import type { Block, Fact, FindingItem } from '../../views/block.js';
import { plainText } from '../value.js';
import { color } from './color.js';
import { type Detail, shownAt } from './less.js';
import { coloredText } from './colored-text.js';
import { hanging, inert, textWidth } from './text.js';

export function findingLines(
  { items, brief }: { items: readonly FindingItem[]; brief: number },
  width: number,
  level: Detail,
  draw: (blocks: readonly Block[]) => string[],
): string[] {
  const shown = level > 1 ? items : items.filter(({ minor }) => !minor).slice(0, brief);
  return shown.flatMap((item, index) => [
    ...(index === 0 || level < 2 ? [] : ['']),
    ...titleLines(item, index + 1, width),
    ...(level > 1
      ? factsOf(item.facts, level).flatMap((fact) => findingFact(fact, width))
      : briefFinding(item, { first: index === 0, showsExample: level > -2 }, width)),
    ...(level > 1 ? draw(item.blocks) : []),
  ]);
}

/** The title, and below it the affected time, unless the expected gain is known, which follows. */
function titleLines(
  { severity, title, gain, expected }: FindingItem,
  index: number,
  width: number,
): string[] {
  const paint = severity === 'high' ? color.red : severity === 'medium' ? color.yellow : color.bold;
  const stake = expected === '' ? inert(plainText(gain)) : '';
  return [
    ...hanging(`  ${String(index).padEnd(3)}`, inert(title), width).map(paint),
    ...(stake === '' ? [] : [`     ${color.bold(stake)}`]),
  ];
}

/** Below a title in a summary: the expected gain, and for the first finding the change and an example. */
function briefFinding(
  { change, expected, example }: FindingItem,
  { first, showsExample }: { first: boolean; showsExample: boolean },
  width: number,
): string[] {
  const commandLines = showsExample ? (example?.split('\n') ?? []) : [];
  return [
    ...(first ? hanging('     ', inert(change), width) : []),
    ...(first && commandLines.length === 1 && textWidth(commandLines[0]!) + 5 <= width
      ? [`     ${inert(commandLines[0]!)}`]
      : []),
    ...hanging('     ', inert(plainText(expected)), width).filter((text) => text.trim() !== ''),
  ];
}

const factsOf = (facts: readonly Fact[], level: Detail): readonly Fact[] => facts.filter(shownAt(level));

function findingFact(fact: Fact, width: number): string[] {
  if ('lines' in fact) return fact.lines.split('\n').map((line) => `                 ${inert(line)}`);
  return hanging(`     ${`${fact.name}:`.padEnd(12)}`, coloredText(fact.text), width);
}
