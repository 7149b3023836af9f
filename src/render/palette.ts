import { type Color, shadeRamps, toneColors } from '../vocabulary/colors.js';

export interface Theme {
  dark: boolean;
  ink: string;
  muted: string;
  line: string;
  surface: string;
}

export const themes: { light: Theme; dark: Theme } = {
  light: {
    dark: false,
    ink: toneColors.ink.light,
    muted: toneColors.muted.light,
    line: '#d9dee6',
    surface: '#ffffff',
  },
  dark: {
    dark: true,
    ink: toneColors.ink.dark,
    muted: toneColors.muted.dark,
    line: '#333b48',
    surface: '#171b22',
  },
};

/** A chart's color in a theme. */
export const themeColor = (color: Color, theme: Theme): string =>
  inTheme(color, theme.dark ? 'dark' : 'light');

/** A chart's color as CSS that follows the reader's theme. */
export const cssColor = (color: Color): string =>
  color.startsWith('#') ? color : `light-dark(${inTheme(color, 'light')},${inTheme(color, 'dark')})`;

function inTheme(color: Color, theme: 'light' | 'dark'): string {
  if (isTone(color)) return toneColors[color][theme];
  if (color.startsWith('#')) return color;
  const shade = Number(color.slice('shade '.length));
  const { faint, strong } = shadeRamps[theme];
  const mixed = faint.map((from, index) => Math.round(from + shade * (strong[index]! - from)));
  return `#${mixed.map((part) => part.toString(16).padStart(2, '0')).join('')}`;
}

const isTone = (color: Color): color is keyof typeof toneColors => color in toneColors;
