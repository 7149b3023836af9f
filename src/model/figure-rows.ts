import type { Figure } from './figure.js';

/** A row of figures in a table over many documents, with units in the names; `label` identifies one of several points. */
export interface FigureRow {
  label: string | null;
  values: Record<string, number | null>;
}

type FigureOrNumber = number | null | Figure | { mean: number };

/** Numbers of figures and distributions; null where they are missing. */
export const valuesOf = (figures: Record<string, FigureOrNumber>): FigureRow['values'] =>
  Object.fromEntries(
    Object.entries(figures).map(([name, figure]) => [
      name,
      figure === null || typeof figure === 'number' ? figure : 'mean' in figure ? figure.mean : figure.value,
    ]),
  );
