import { describe, expect, it } from 'vitest';
import { classColors } from '../vocabulary/colors.js';
import { idleCauses } from '../vocabulary/idle-causes.js';
import { themeColor, themes } from './palette.js';

type Rgb = [number, number, number];

const linear = (hex: string): Rgb => {
  const channel = (from: number): number => {
    const value = Number.parseInt(hex.slice(from, from + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return [channel(1), channel(3), channel(5)];
};

/** Machado, Oliveira & Fernandes (2009), severity 1.0, on linear RGB. */
const vision: Record<string, [Rgb, Rgb, Rgb]> = {
  normal: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
};

/** OKLab (Ottosson 2020): distances of about 0.02 are just noticeable. */
function oklab([r, g, b]: Rgb): Rgb {
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

const seenBy = (kind: string, color: Rgb): Rgb =>
  (vision[kind] ?? []).map((row) =>
    Math.min(1, Math.max(0, row[0] * color[0] + row[1] * color[1] + row[2] * color[2])),
  ) as Rgb;

const luminance = ([r, g, b]: Rgb): number => 0.2126 * r + 0.7152 * g + 0.0722 * b;

function contrast(color: string, surface: string): number {
  const [low, high] = [luminance(linear(color)), luminance(linear(surface))].toSorted((a, b) => a - b);
  return (high! + 0.05) / (low! + 0.05);
}

describe('class colors', () => {
  it.each(Object.keys(vision))('every pair is distinguishable with %s vision', (kind) => {
    const colors = Object.entries(classColors).map(
      ([name, hex]) => [name, oklab(seenBy(kind, linear(hex)))] as const,
    );
    for (const [index, [a, colorA]] of colors.entries()) {
      for (const [b, colorB] of colors.slice(index + 1)) {
        const distance = Math.hypot(...colorA.map((value, axis) => value - (colorB[axis] ?? 0)));
        expect(distance, `${a} and ${b}`).toBeGreaterThan(0.065);
      }
    }
  });

  it.each(['light', 'dark'] as const)('have enough contrast to the %s page', (name) => {
    for (const [opClass, hex] of Object.entries(classColors))
      expect(contrast(hex, themes[name].surface), opClass).toBeGreaterThan(1.5);
  });
});

it.each(['light', 'dark'] as const)('idle causes are visible on the %s page', (name) => {
  for (const { label, color } of Object.values(idleCauses))
    expect(contrast(themeColor(color, themes[name]), themes[name].surface), label).toBeGreaterThan(1.3);
});

it("light cells are close to the page's color and dark ones far from it, in both themes", () => {
  for (const theme of [themes.light, themes.dark]) {
    const lightness = (hex: string): number => oklab(linear(hex))[0];
    const page = lightness(theme.surface);
    const away = [0, 0.25, 0.5, 0.75, 1].map((shade) =>
      Math.abs(lightness(themeColor(`shade ${shade}`, theme)) - page),
    );
    expect(away[0]).toBeLessThan(0.12);
    expect(away[4]).toBeGreaterThan(0.5);
    expect(away).toEqual(away.toSorted((a, b) => a - b));
  }
});
