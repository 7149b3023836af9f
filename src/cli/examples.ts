/** The two examples every `--help` ends with. */
export function examples(...lines: [string, string][]): string {
  return `\nExamples:\n${lines.map(([command, meaning]) => `  $ ${command}\n      ${meaning}`).join('\n')}\n`;
}
