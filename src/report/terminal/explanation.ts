/** What explains a session, as text of a summary's width; "" where there is nothing. */
export interface Explanation {
  sentences: string;
  waterfall: string;
  findings: string;
}

/** The parts one below the other, each after an empty line. */
export const explanationLines = (parts: readonly (string | undefined)[]): string[] =>
  parts.flatMap((text) => (text ? ['', text] : []));
