/** A Markdown table with padded cells. */
export function textTable(head: readonly string[], lines: readonly string[][]): string {
  const widths = head.map((title, i) => Math.max(title.length, ...lines.map((line) => line[i]!.length)));
  const text = (cells: readonly string[]) =>
    `| ${cells.map((cell, i) => cell.padEnd(widths[i]!)).join(' | ')} |`;
  return [text(head), text(widths.map((width) => '-'.repeat(width))), ...lines.map(text)].join('\n');
}
