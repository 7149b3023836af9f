/** The two examples at the end of each `--help`. */
export function examples(...lines: [string, string][]): string {
  return `\nExamples:\n${lines.map(([command, meaning]) => `  $ ${command}\n      ${meaning}`).join('\n')}\n`;
}
