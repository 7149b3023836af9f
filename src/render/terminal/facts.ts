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

/** In a summary the reasons that fit are a column; with details they are below their commands. */
export function commandLines(
  items: readonly { command: string; why: string }[],
  width: number,
  level: Detail,
): string[] {
  const fits = ({ command, why }: { command: string; why: string }, column: number) =>
    textWidth(inert(command)) <= column && 4 + column + 2 + textWidth(inert(why)) <= width;
  // The widest command that leaves room for its own reason sets the column.
  const column = Math.max(
    0,
    ...items.map(({ command, why }) => {
      const own = textWidth(inert(command));
      return fits({ command, why }, own) ? own : 0;
    }),
  );
  const allFit = items.every((item) => fits(item, column));
  return items.flatMap((item) => {
    const command = inert(item.command);
    const why = inert(item.why);
    if (allFit || (level < 2 && fits(item, column))) return [`    ${command.padEnd(column)}  ${why}`];
    return [`    ${command}`, ...(level < 2 ? [] : hanging('        ', why, width))];
  });
}
