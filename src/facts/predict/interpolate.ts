export interface Line {
  offset: number;
  slope: number;
}

interface XY {
  x: number;
  y: number;
}

/** Interpolates on logarithms of both: exact for y = c·x^p. */
export function logLog(x: number, x0: number, y0: number, x1: number, y1: number): number {
  const share = Math.log(x / x0) / Math.log(x1 / x0);
  return y0 * (y1 / y0) ** share;
}

/** The line through two points; flat if their x are equal. */
export function affineThrough(a: XY, b: XY): Line {
  const slope = b.x === a.x ? 0 : (b.y - a.y) / (b.x - a.x);
  return { offset: a.y - slope * a.x, slope };
}

/**
 * Least squares of the relative error: Σ ((offset + slope·x)/y − 1)². Flat with one point or a negative slope, through
 * the origin with a negative offset; null without points.
 */
export function affineFit(points: readonly XY[]): Line | null {
  const [first] = points;
  if (!first) return null;
  let [sw, sx, sxx, sy, sxy] = [0, 0, 0, 0, 0];
  for (const { x, y } of points) {
    const w = 1 / (y * y);
    sw += w;
    sx += w * x;
    sxx += w * x * x;
    sy += w * y;
    sxy += w * x * y;
  }
  const determinant = sw * sxx - sx * sx;
  const slope = determinant > 1e-12 * sw * sxx ? (sw * sxy - sx * sy) / determinant : 0;
  const offset = (sy - slope * sx) / sw;
  if (slope < 0) return { offset: sy / sw, slope: 0 };
  if (offset < 0) return { offset: 0, slope: sxy / sxx };
  return { offset, slope };
}
