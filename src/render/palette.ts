import { type Colour, toneColors } from '../vocabulary/colours.js';

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
export const painted = (color: Colour, theme: Theme): string =>
  isTone(color) ? toneColors[color][theme.dark ? 'dark' : 'light'] : color;

/** A chart's color as CSS that follows the reader's theme. */
export const cssColour = (color: Colour): string =>
  isTone(color) ? `light-dark(${toneColors[color].light},${toneColors[color].dark})` : color;

const isTone = (color: Colour): color is keyof typeof toneColors => color in toneColors;
