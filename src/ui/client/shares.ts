import { laneHeight } from './rows.js';

/** Pixel rows per lane. */
const pixelRows = laneHeight - 2;
/** Minimum height of a share above 0, in pixel rows. */
const minHeight = 0.5;
/** Rounding error of a sum of shares. */
const tiny = 1e-6;

/**
 * Draws one pixel column of a lane: classes on top of each other, each as high as its share of the time. A non-zero sum always gets a
 * visible height. A pixel row in which classes meet is mixed here by their parts, since canvas anti-aliasing blends two of them with wrong
 * weights.
 */
export function drawShares(
  canvas: CanvasRenderingContext2D,
  { left, width, top }: { left: number; width: number; top: number },
  shares: readonly number[],
  colors: readonly string[],
): void {
  const total = shares.reduce((sum, share) => sum + share, 0);
  if (total === 0) return;
  const scale = (Math.min(1, Math.max(total, minHeight / pixelRows)) * pixelRows) / total;
  let filled = 0;
  let mixed: { kind: number; part: number }[] = [];
  const flush = (): void => {
    // A later color covers part of the earlier ones, so each is painted with the weight that remains.
    let later = mixed.reduce((sum, { part }) => sum + part, 0);
    for (const { kind, part } of mixed) {
      later -= part;
      canvas.globalAlpha = Math.min(1, part / Math.max(tiny, 1 - later));
      canvas.fillStyle = colors[kind]!;
      canvas.fillRect(left, top + pixelRows - Math.ceil(filled - tiny), width, 1);
    }
    canvas.globalAlpha = 1;
    mixed = [];
  };
  for (const [kind, share] of shares.entries()) {
    let rest = share * scale;
    while (rest > tiny) {
      const inRow = filled - Math.floor(filled + tiny);
      if (inRow < tiny && rest >= 1) {
        const wholePixels = Math.floor(rest);
        filled += wholePixels;
        rest -= wholePixels;
        canvas.fillStyle = colors[kind]!;
        canvas.fillRect(left, top + pixelRows - Math.round(filled), width, wholePixels);
        continue;
      }
      const part = Math.min(rest, 1 - inRow);
      mixed.push({ kind, part });
      filled += part;
      rest -= part;
      if (inRow + part > 1 - tiny) flush();
    }
  }
  flush();
}
