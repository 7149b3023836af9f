import type { InMemoryColumn } from '../../../model/workbench.js';
import { attributions } from '../host-threads.js';
import { computedColumn, textColumn } from './columns.js';

/** Stage and attribution of each call, encoded by `placeOf` (host-threads.ts); 0 is no stage. */
export type Places = Int32Array;

/** Stage id of a place; NaN without a stage. */
export function stageOf(place: number): number {
  return place === 0 ? Number.NaN : Math.floor(place / attributions.length);
}

/** Index in `attributions` of a place; −1 without a stage. */
function attributionOf(place: number): number {
  return place === 0 ? -1 : place % attributions.length;
}

export const stageIds = (places: Places): InMemoryColumn => computedColumn((row) => stageOf(places[row]!));

export const attributedBy = (places: Places): InMemoryColumn =>
  textColumn(attributions, (row) => attributionOf(places[row]!));
