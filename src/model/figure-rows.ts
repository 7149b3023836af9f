import type { Figure } from './figure.js';

/** A row of the figures that a table over many documents shows, units in their names; `label`: of several, which one. */
export interface FigureRow {
  label: string | null;
  values: Record<string, number | null>;
}

type Known = number | null | Figure | { mean: number };

/** Numbers of figures and distributions; null where they are missing. */
export const valuesOf = (figures: Record<string, Known>): FigureRow['values'] =>
  Object.fromEntries(
    Object.entries(figures).map(([name, figure]) => [
      name,
      figure === null || typeof figure === 'number' ? figure : 'mean' in figure ? figure.mean : figure.value,
    ]),
  );
