import type { Place } from '../timeline/shown.js';
import { cutEnd } from '../../vocabulary/cut.js';
import { formatTimeTick } from '../../vocabulary/format.js';
import {
  binsPerTile,
  type EventsRecord,
  type LaneRecord,
  type SharesRecord,
} from '../timeline/tile-format.js';
import { channelsOf } from './channels.js';
import { drawLabels, font } from './labels.js';
import { axisHeight, counterHeight, laneHeight, type LaneRow, type Layout } from './rows.js';
import { drawShares } from './shares.js';
import type { Mark, Scene } from './scene.js';
import { Tiles } from './tiles.js';

export const xOf = ({ range, gutter, width }: Scene, ns: number): number =>
  gutter + ((ns - range.start) / range.width) * (width - gutter);

export const nsAt = ({ range, gutter, width }: Scene, x: number): number =>
  range.start + ((x - gutter) / (width - gutter)) * range.width;

export const levelOf = ({ range, gutter, width }: Scene): number =>
  Tiles.level(range.width / Math.max(1, width - gutter));

/** Draws the timeline. */
export function draw(canvas: CanvasRenderingContext2D, scene: Scene): void {
  const { width, height, gutter, theme, layout } = scene;
  canvas.fillStyle = theme.surface;
  canvas.fillRect(0, 0, width, height);
  canvas.font = font;
  canvas.textBaseline = 'middle';
  canvas.save();
  canvas.beginPath();
  canvas.rect(gutter, 0, width - gutter, height);
  canvas.clip();
  drawAxis(canvas, scene);
  const isDrawn = ({ top }: { top: number }): boolean =>
    top >= scene.drawn.top - counterHeight && top <= scene.drawn.bottom;
  for (const overlaid of [false, true])
    drawLanes(
      canvas,
      sceneOf(scene, overlaid),
      layout.lanes.filter((row) => row.overlaid === overlaid && isDrawn(row)),
    );
  for (const row of layout.counters.filter(isDrawn)) drawCounter(canvas, scene, row);
  drawOverlays(canvas, scene);
  canvas.restore();
  drawLabels(canvas, scene);
}

/** The scene of the rows of the shown step, or of the other one. */
const sceneOf = (scene: Scene, overlaid: boolean): Scene =>
  overlaid && scene.overlay ? { ...scene, range: scene.range.shifted(scene.overlay.shift) } : scene;

function drawLanes(canvas: CanvasRenderingContext2D, scene: Scene, rows: readonly LaneRow[]): void {
  if (rows.length === 0) return;
  const names: NameInside[] = [];
  for (const { tile, from, to } of scene.tiles.covering(scene.range.start, scene.range.end, levelOf(scene)))
    for (const row of rows)
      for (const record of tile.lanes.get(row.lane) ?? [])
        drawRecord(canvas, scene, { row, tile, from, to }, record, names);
  // After all tiles: the next tile would paint over a name that reaches into it.
  for (const name of names) drawName(canvas, name);
}

/** A counter as steps: each value is drawn until the next sample, scaled from 0 to the maximum of the whole capture. */
function drawCounter(
  canvas: CanvasRenderingContext2D,
  scene: Scene,
  { top, counter: { times, values } }: Layout['counters'][number],
): void {
  const { range, theme } = scene;
  const max = values.reduce((largest, value) => Math.max(largest, value), Number.MIN_VALUE);
  const yOf = (value: number): number =>
    top + counterHeight - 1 - (Math.max(0, value) / max) * (counterHeight - 3);
  canvas.strokeStyle = theme.link;
  canvas.beginPath();
  for (let i = 0; i < times.length; i++) {
    if (times[i]! > range.end) break;
    const next = times[i + 1] ?? times[i]!;
    if (next < range.start) continue;
    canvas.lineTo(xOf(scene, times[i]!), yOf(values[i]!));
    canvas.lineTo(xOf(scene, next), yOf(values[i]!));
  }
  canvas.stroke();
}

type TileOf = ReturnType<Tiles['covering']>[number]['tile'];

interface RecordPlace {
  row: LaneRow;
  tile: TileOf;
  /** The part of the tile to draw, ns after the start of the timeline. */
  from: number;
  to: number;
}

function drawRecord(
  canvas: CanvasRenderingContext2D,
  scene: Scene,
  place: RecordPlace,
  record: LaneRecord,
  names: NameInside[],
): void {
  if (record.kind === 'events') drawEvents(canvas, scene, place, record, names);
  else drawBins(canvas, scene, place, record);
}

/** Whole pixels: two half-covered pixels where tiles meet would show as a line. */
const edgesOf = (scene: Scene, { from, to }: RecordPlace): [left: number, right: number] => [
  Math.round(xOf(scene, from)),
  Math.round(xOf(scene, to)),
];

/** Events at least a pixel wide as boxes; several narrower ones as shares of their pixel, as in wider tiles. */
function drawEvents(
  canvas: CanvasRenderingContext2D,
  scene: Scene,
  place: RecordPlace,
  record: EventsRecord,
  names: NameInside[],
): void {
  const { row, tile, from } = place;
  const { top } = row;
  const colors = scene.colors[row.track.table]!;
  const [left, right] = edgesOf(scene, place);
  let column = -1;
  const shares = colors.map(() => 0);
  const flush = (): void => {
    drawShares(canvas, { left: column, width: 1, top }, shares, colors);
    shares.fill(0);
  };
  for (let i = 0; i < record.start.length; i++) {
    const eventStart = tile.start + record.start[i]!;
    const last = xOf(scene, tile.start + record.end[i]!);
    const start = Math.max(left, xOf(scene, eventStart));
    const end = Math.min(right, last);
    // Part of a neighboring tile.
    if (end < left || start > right) continue;
    const width = end - start;
    const kind = record.class[i]!;
    if (width >= 1) {
      canvas.fillStyle = colors[kind] ?? scene.theme.muted;
      canvas.fillRect(start, top, Math.max(1, width - (width > 4 && last <= right ? 1 : 0)), laneHeight - 2);
    } else {
      const firstPixel = Math.floor(start);
      if (firstPixel !== column) flush();
      column = firstPixel;
      shares[kind]! += width;
    }
    // Once per event: in the tile where the event starts, or in the leftmost visible one.
    if (last - start > 24 && (eventStart >= from || from <= scene.range.start))
      names.push({
        name: scene.labels[record.name[i]!] ?? '',
        left: start,
        top,
        width: Math.min(last, scene.width) - start,
        color: colors[kind]!,
      });
  }
  flush();
}

/** The shares of each bin as a column of one to two pixels. */
function drawBins(
  canvas: CanvasRenderingContext2D,
  scene: Scene,
  place: RecordPlace,
  record: SharesRecord,
): void {
  const { row, tile, from, to } = place;
  const colors = scene.colors[row.track.table]!;
  const [left, right] = edgesOf(scene, place);
  const shares = colors.map(() => 0);
  const binNs = tile.width / binsPerTile;
  const first = Math.max(0, Math.floor((from - tile.start) / binNs));
  const last = Math.min(binsPerTile - 1, Math.ceil((to - tile.start) / binNs) - 1);
  for (let bin = first; bin <= last; bin++) {
    // Whole pixels: two half-covered pixels next to each other would show as a stripe.
    const start = Math.round(Math.max(left, xOf(scene, tile.start + bin * binNs)));
    const end = Math.round(Math.min(right, xOf(scene, tile.start + (bin + 1) * binNs)));
    shares.fill(0);
    for (const { class: kind, shares: binShares } of record.classes) shares[kind] = binShares[bin]!;
    drawShares(canvas, { left: start, width: end - start, top: row.top }, shares, colors);
  }
}

interface NameInside {
  name: string;
  left: number;
  top: number;
  width: number;
  color: string;
}

function drawName(canvas: CanvasRenderingContext2D, { name, left, top, width, color }: NameInside): void {
  const fits = Math.floor((width - 6) / 5.6);
  if (fits < 2 || name === '') return;
  canvas.fillStyle = isDark(color) ? '#ffffff' : '#10151d';
  canvas.fillText(cutEnd(name, fits), left + 3, top + (laneHeight - 2) / 2 + 0.5, width - 4);
}

const darkness = new Map<string, boolean>();

/** Whether white text on a color is more readable than black, by relative luminance. */
function isDark(color: string): boolean {
  const known = darkness.get(color);
  if (known !== undefined) return known;
  const [red = 0, green = 0, blue = 0] = channelsOf(color).map((channel) => (channel / 255) ** 2.2);
  const dark = 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.3;
  darkness.set(color, dark);
  return dark;
}

function drawAxis(canvas: CanvasRenderingContext2D, scene: Scene): void {
  const { range, zero, width, gutter, theme, height } = scene;
  const step = tickStep(range.width / Math.max(3, (width - gutter) / 110));
  canvas.fillStyle = theme.muted;
  canvas.strokeStyle = theme.line;
  for (let tick = Math.ceil((zero + range.start) / step) * step; tick <= zero + range.end; tick += step) {
    const x = Math.round(xOf(scene, tick - zero)) + 0.5;
    canvas.beginPath();
    canvas.moveTo(x, axisHeight - 5);
    canvas.lineTo(x, height);
    canvas.stroke();
    const text = formatTimeTick(tick, step);
    if (x + 3 + canvas.measureText(text).width <= width) canvas.fillText(text, x + 3, axisHeight / 2);
  }
}

/** Distance of ticks: 1, 2 or 5 times a power of ten, ns. */
function tickStep(min: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, min)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= min) ?? 10 * power;
}

function drawOverlays(canvas: CanvasRenderingContext2D, scene: Scene): void {
  const { theme, selected, event, launch, height, layout } = scene;
  const drawBand = (mark: Mark, color: string, alpha: number): void => {
    const [left, right] = [xOf(scene, mark.start), xOf(scene, mark.end)];
    canvas.globalAlpha = alpha;
    canvas.fillStyle = color;
    canvas.fillRect(left, axisHeight, Math.max(1, right - left), height);
    canvas.globalAlpha = 1;
    canvas.strokeStyle = color;
    canvas.strokeRect(left, axisHeight, Math.max(1, right - left), height - axisHeight);
  };
  if (selected) {
    drawBand(selected, theme.link, 0.15);
    const text = formatTimeTick(selected.end - selected.start, (selected.end - selected.start) / 100);
    canvas.fillStyle = theme.ink;
    canvas.fillText(text, Math.max(scene.gutter + 4, xOf(scene, selected.start) + 4), axisHeight + 9);
  }
  const rowOf = (lane: number) => layout.lanes.find((row) => row.lane === lane);
  for (const mark of [event, launch]) {
    const row = mark && rowOf(mark.lane);
    if (!row || !mark) continue;
    canvas.strokeStyle = theme.ink;
    canvas.lineWidth = 2;
    const [left, right] = [xOf(scene, mark.start), xOf(scene, mark.end)];
    canvas.strokeRect(left, row.top, Math.max(2, right - left), laneHeight - 2);
    canvas.lineWidth = 1;
  }
  const [from, to] = [event && rowOf(event.lane), launch && rowOf(launch.lane)];
  if (event && launch && from && to) {
    const [a, b] = [
      { x: xOf(scene, event.start), y: from.top + laneHeight / 2 },
      { x: xOf(scene, launch.start), y: to.top + laneHeight / 2 },
    ];
    canvas.strokeStyle = theme.ink;
    canvas.beginPath();
    canvas.moveTo(a.x, a.y);
    canvas.bezierCurveTo((a.x + b.x) / 2, a.y, (a.x + b.x) / 2, b.y, b.x, b.y);
    canvas.stroke();
  }
}

/** The event under a point; null if there is none or the lane shows shares there. */
export function eventAt(shown: Scene, x: number, y: number): Place | null {
  const row = shown.layout.lanes.find(({ top }) => y >= top && y < top + laneHeight);
  if (!row) return null;
  const scene = sceneOf(shown, row.overlaid);
  const ns = nsAt(scene, x);
  const slack = (1.5 * scene.range.width) / scene.width;
  for (const { tile } of scene.tiles.covering(ns - slack, ns + slack, levelOf(scene))) {
    let best: { index: number; away: number } | null = null;
    for (const record of tile.lanes.get(row.lane) ?? []) {
      if (record.kind !== 'events') continue;
      for (let i = 0; i < record.start.length; i++) {
        const away = Math.max(tile.start + record.start[i]! - ns, ns - tile.start - record.end[i]!, 0);
        if (away <= slack && (best === null || away < best.away)) best = { index: record.first + i, away };
      }
    }
    if (best) return { lane: row.lane, index: best.index };
  }
  return null;
}
