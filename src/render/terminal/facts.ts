import type { Text } from '../../views/text.js';
import type { Detail } from './less.js';
import { coloredText } from './colored-text.js';
import { hanging, inert, textWidth } from './text.js';

export function factLines(items: readonly { name: string; text: Text }[], width: number): string[] {
  const nameWidth = Math.max(0, ...items.map(({ name }) => textWidth(name)));
  return items.flatMap(({ name, text }) =>
    hanging(`  ${inert(name).padEnd(nameWidth)}  `, coloredText(text), width),
  );
}

/** In a summary the reasons are a column if all fit; with details they are below their commands. */
export function commandLines(
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
