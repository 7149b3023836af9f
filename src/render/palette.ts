import { opClasses, type OpClass } from '../model/classes.js';

/**
 * One colour an operator class in every chart, table and page: Okabe & Ito's (2008) colour-blind safe set, its yellow a
 * little darker to be seen on white, and three more so far from all others that every pair can be told apart
 * under protanopia and deuteranopia too (palette.test.ts simulates both).
 */
export const classColors: Record<OpClass, string> = {
  gemm: '#0072b2',
  attention: '#e69f00',
  norm: '#009e73',
  elementwise: '#cc79a7',
  copy: '#56b4e9',
  embedding: '#eecc00',
  moe_routing: '#6084fc',
  sampling: '#d55e00',
  communication: '#4433ee',
  quantization: '#aa2233',
  graph: '#4a2fb0',
  other: '#5f6773',
};

/** Bars that are no class: what the hardware allows, and time in which no operator ran. */
export const barColors = {
  roofline: { light: '#3b4252', dark: '#c5ccd8' },
  serial: { light: '#7b8496', dark: '#8d97a8' },
  idle: { light: '#b3bac6', dark: '#5c6575' },
} as const;

export interface Theme {
  dark: boolean;
  ink: string;
  muted: string;
  line: string;
  surface: string;
}

export const themes: { light: Theme; dark: Theme } = {
  light: { dark: false, ink: '#1c2330', muted: '#5a6475', line: '#d9dee6', surface: '#ffffff' },
  dark: { dark: true, ink: '#e4e8ef', muted: '#9aa5b6', line: '#333b48', surface: '#171b22' },
};

const isOpClass = (text: string): text is OpClass => (opClasses as readonly string[]).includes(text);

/** Colour of a waterfall bar: its class's where it has one. */
export function barColor(id: string, theme: Theme): string {
  const tone = theme.dark ? 'dark' : 'light';
  const [head = '', tail = ''] = id.split('.');
  if (head === 'roofline' || head === 'serial') return barColors[head][tone];
  if (isOpClass(tail)) return classColors[tail];
  if (head === 'exposed_copy') return classColors.copy;
  if (head === 'exposed_comm') return classColors.communication;
  return barColors.idle[tone];
}
