import { plural } from '../../vocabulary/format.js';
import type { Scene } from './scene.js';
import { captionHeight, headHeight, laneHeight } from './rows.js';

export const font = '11px system-ui, sans-serif';

/** Draws the column of names, and the texts that reach over it. */
export function drawLabels(canvas: CanvasRenderingContext2D, scene: Scene): void {
  const { gutter, height, theme, layout, head, overlay } = scene;
  canvas.fillStyle = theme.surface;
  canvas.fillRect(0, 0, gutter, height);
  canvas.strokeStyle = theme.line;
  canvas.beginPath();
  canvas.moveTo(gutter - 0.5, 0);
  canvas.lineTo(gutter - 0.5, height);
  canvas.stroke();
  for (const { top, label, depth, hidden, key } of layout.heads) {
    if (key === head) {
      canvas.strokeStyle = theme.link;
      canvas.lineWidth = 2;
      canvas.strokeRect(1, top + 1, gutter - 3, headHeight - 2);
      canvas.lineWidth = 1;
    }
    canvas.fillStyle = theme.ink;
    canvas.font = `600 ${font}`;
    canvas.fillText(`${hidden > 0 ? '▸' : '▾'} ${label}`, 4 + 8 * depth, top + 11, gutter - 8 - 8 * depth);
    if (hidden === 0) continue;
    canvas.font = font;
    canvas.fillStyle = theme.muted;
    canvas.fillText(`${plural(hidden, 'lane')} closed: click the name to open`, gutter + 6, top + 11);
  }
  canvas.font = font;
  canvas.fillStyle = theme.muted;
  for (const { top, track, first, overlaid } of layout.lanes) {
    const { label: full, short } = track;
    const label = overlaid
      ? `⤷ ${overlay?.label ?? ''}`
      : canvas.measureText(full).width <= gutter - 12
        ? full
        : short;
    if (first) canvas.fillText(fitting(canvas, label, gutter - 12), 8, top + laneHeight / 2 - 1);
  }
  for (const { top, counter, limit, caption } of layout.counters)
    if (caption) drawLine(canvas, scene, `${counter.label}, ${limit}`, top - captionHeight);
    else {
      canvas.fillText(counter.label, 8, top + 8);
      canvas.fillText(limit, 8, top + 22);
    }
  for (const { top, text } of layout.constants) drawLine(canvas, scene, text, top);
}

/** A line of text that reaches over the column of names; no line of the axis runs through it. */
function drawLine(
  canvas: CanvasRenderingContext2D,
  { width, theme }: Scene,
  text: string,
  top: number,
): void {
  const shown = fitting(canvas, text, width - 16);
  canvas.fillStyle = theme.surface;
  canvas.fillRect(4, top, canvas.measureText(shown).width + 8, captionHeight);
  canvas.fillStyle = theme.muted;
  canvas.fillText(shown, 8, top + captionHeight / 2);
}

/** Whether a text is narrower than the column of names. */
export function fitsGutter(canvas: CanvasRenderingContext2D, text: string, gutter: number): boolean {
  canvas.font = font;
  return canvas.measureText(text).width <= gutter - 12;
}

/** Text cut to a width, px, instead of squeezed. */
function fitting(canvas: CanvasRenderingContext2D, text: string, width: number): string {
  if (canvas.measureText(text).width <= width) return text;
  let length = text.length - 1;
  while (length > 1 && canvas.measureText(`${text.slice(0, length)}…`).width > width) length--;
  return `${text.slice(0, length)}…`;
}
