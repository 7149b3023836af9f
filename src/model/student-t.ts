/**
 * Student's t for any positive degrees of freedom, since Welch's are seldom integers. P(|T| > t) = I(v / (v + t²); v/2, 1/2) with the
 * regularized incomplete beta function (DLMF 8.17).
 */
export function studentTwoSidedP(t: number, degreesOfFreedom: number): number {
  const v = degreesOfFreedom;
  return incompleteBeta(v / (v + t * t), v / 2, 0.5);
}

/** t with P(|T| > t) = `p`, by bisection to 12 digits. */
export function studentTwoSidedT(p: number, degreesOfFreedom: number): number {
  let low = 0;
  let high = 1;
  while (studentTwoSidedP(high, degreesOfFreedom) > p) high *= 2;
  for (let i = 0; i < 200 && high - low > 1e-12 * high; i++) {
    const middle = (low + high) / 2;
    if (studentTwoSidedP(middle, degreesOfFreedom) > p) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

const t95ByDegrees = new Map<number, number>();

/** Half width of a 95 % interval in standard errors. */
export function studentT95(degreesOfFreedom: number): number {
  const t95 = t95ByDegrees.get(degreesOfFreedom) ?? studentTwoSidedT(0.05, degreesOfFreedom);
  t95ByDegrees.set(degreesOfFreedom, t95);
  return t95;
}

/** Continued fraction of DLMF 8.17.22 by Lentz's method; symmetric in (x, a, b) ↔ (1 − x, b, a), used where it converges. */
function incompleteBeta(x: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x));
  return x < (a + 1) / (a + b + 2)
    ? (front * betaFraction(x, a, b)) / a
    : 1 - (front * betaFraction(1 - x, b, a)) / b;
}

function betaFraction(x: number, a: number, b: number): number {
  const tiny = 1e-300;
  const awayFromZero = (value: number) => (Math.abs(value) < tiny ? tiny : value);
  let c = 1;
  let d = 1 / awayFromZero(1 - ((a + b) * x) / (a + 1));
  let fraction = d;
  for (let m = 1; m <= 10_000; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / awayFromZero(1 + even * d);
    c = awayFromZero(1 + even / c);
    fraction *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / awayFromZero(1 + odd * d);
    c = awayFromZero(1 + odd / c);
    const step = d * c;
    fraction *= step;
    if (Math.abs(step - 1) < 1e-15) break;
  }
  return fraction;
}

/** Lanczos' approximation, g = 7, nine terms: 15 digits for positive arguments. */
function logGamma(x: number): number {
  const terms = [
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
  ];
  if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x);
  const t = x + 6.5;
  const series = terms.reduce((sum, term, i) => (i === 0 ? term : sum + term / (x - 1 + i)), 0);
  return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(series);
}
