import type { Range } from './range.js';
import type { Layout } from './rows.js';
import type { OverlaidStep } from './step-picker.js';
import type { Tiles } from './tiles.js';

export interface Mark {
  start: number;
  end: number;
}

export interface Scene {
  width: number;
  height: number;
  gutter: number;
  /** Lanes and curves between these heights are drawn, px from the top of the picture. */
  drawn: { top: number; bottom: number };
  range: Range;
  /** Start of the timeline, ns since the session's start, from which times are counted on all pages. */
  zero: number;
  layout: Layout;
  tiles: Tiles;
  /** Colors by table and class. */
  colors: Record<string, string[]>;
  labels: readonly string[];
  /** Colors of the light or dark theme. */
  theme: { ink: string; muted: string; line: string; surface: string; raised: string; link: string };
  /** Another step, drawn below each lane. */
  overlay: OverlaidStep | null;
  selected: Mark | null;
  event: { lane: number; start: number; end: number } | null;
  launch: { lane: number; start: number; end: number } | null;
  /** Key of the group that the keyboard acts on. */
  head: string | null;
}
