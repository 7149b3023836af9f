/**
 * Names the events of one kind in one kind of stage, which share bars and findings.
 * @param part cause of a gap, class of a kernel or operator, direction of a copy in any case; '' for a stage
 */
export const explainedKey = (stage: string, table: string, part: string): string =>
  `${stage} ${table}:${part.toLowerCase()}`;
