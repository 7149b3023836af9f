import type { HeldColumn } from '../../../model/workbench.js';
import { attributions } from '../host-threads.js';
import { computed, worded } from './columns.js';

/** placeOf for each call. */
export type Places = Int32Array;

/** NaN: none. */
export function stageOf(place: number): number {
  return place === 0 ? Number.NaN : Math.floor(place / attributions.length);
}

/** Index in `attributions`; −1: no stage. */
function attributionOf(place: number): number {
  return place === 0 ? -1 : place % attributions.length;
}

export const stageIds = (places: Places): HeldColumn => computed((row) => stageOf(places[row]!));

export const attributedBy = (places: Places): HeldColumn =>
  worded(attributions, (row) => attributionOf(places[row]!));
