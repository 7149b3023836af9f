import { barParts, isHostBar } from '../model/bars.js';
import { opClasses, type OpClass } from '../model/classes.js';
import type { MemoryComponent } from '../model/documents/memory-profile.js';
import type { PhaseKind } from '../model/documents/trace.js';
import { idleCauses } from './idle-causes.js';

/**
 * One color per operator class in every chart, table and page: Okabe & Ito's (2008) color-blind safe set with a slightly darker yellow, for
 * contrast on white, and three more that differ enough from all others under protanopia and deuteranopia too (palette.test.ts simulates
 * both).
 */
export const classColors: Record<OpClass, `#${string}`> = {
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

/** Colors that depend on the light or dark theme: text, bars without a class, and idle causes too dark for a dark page. */
export const toneColors = {
  ink: { light: '#1c2330', dark: '#e4e8ef' },
  muted: { light: '#5a6475', dark: '#9aa5b6' },
  roofline: { light: '#3b4252', dark: '#c5ccd8' },
  serial: { light: '#7b8496', dark: '#8d97a8' },
  idle: { light: '#b3bac6', dark: '#5c6575' },
  host: { light: '#7f2704', dark: '#96350a' },
  'host edge': { light: '#4d1a05', dark: '#5a3826' },
} as const;

/** Light to dark blue of ColorBrewer's Blues: one hue, readable in gray and by the color-blind; `faint` is close to the page's color. */
export const shadeRamps = {
  light: { faint: [222, 235, 247], strong: [8, 69, 148] },
  dark: { faint: [30, 42, 60], strong: [158, 202, 225] },
} as const;

/** A color in a chart: fixed, by the name of a color that follows the theme, or between faint (0) and strong (1) of the theme. */
export type Color = `#${string}` | keyof typeof toneColors | `shade ${number}`;

const isOpClass = (text: string): text is OpClass => (opClasses as readonly string[]).includes(text);

/** Color of a waterfall bar: the color of its class if it has one; causes of idle time have their own hue. */
export function barColor(id: string): Color {
  const cause = idleCauses[id] ?? (isHostBar(id) ? idleCauses['host'] : undefined);
  if (cause) return cause.color;
  const { head, tail } = barParts(id);
  if (head === 'roofline' || head === 'serial') return head;
  if (isOpClass(tail)) return classColors[tail];
  if (head === 'exposed_copy') return classColors.copy;
  return head === 'exposed_comm' ? classColors.communication : 'idle';
}

export function phaseColor(kind: PhaseKind): Color {
  if (kind === 'sampling') return classColors.sampling;
  if (kind === 'prefill' || kind === 'mixed') return 'roofline';
  return kind === 'decode' ? 'serial' : 'idle';
}

/** Color of what a device did in a phase: compute, exposed communication and copies, or idle by cause. */
export function partColor(id: string): Color {
  if (id === 'compute') return 'roofline';
  if (id === 'communication') return classColors.communication;
  return id === 'copies' ? classColors.copy : idleCauses[id]!.color;
}

/** Color of a memory component; reserved but unused memory is gray like idle time. */
const componentColors: Partial<Record<MemoryComponent['component'], Color>> = {
  model_weights: classColors.gemm,
  kv_cache: classColors.attention,
  activations: classColors.norm,
  framework_overhead: classColors.copy,
  cuda_graphs: classColors.graph,
  cuda_context: classColors.quantization,
  other_processes: classColors.sampling,
  residual: classColors.elementwise,
};
export const componentColor = (component: MemoryComponent['component']): Color =>
  componentColors[component] ?? 'idle';

/** Color, symbol and dash of a compared line, by position: the first twelve differ even in gray. */
export function lineMark(index: number): { color: Color; symbol: LineSymbol; dash: Dash } {
  return {
    color: lineColors[index % lineColors.length]!,
    symbol: symbols[index % symbols.length]!,
    dash: dashes[Math.floor(index / symbols.length) % dashes.length]!,
  };
}

const lineColors = [
  classColors.gemm,
  classColors.attention,
  classColors.norm,
  classColors.elementwise,
  classColors.copy,
  classColors.sampling,
  classColors.communication,
  classColors.quantization,
];
const symbols = ['circle', 'rect', 'triangle', 'diamond'] as const;
const dashes = ['solid', 'dashed', 'dotted'] as const;
export type LineSymbol = (typeof symbols)[number];
export type Dash = (typeof dashes)[number];

/** Color of a sampled scope: processes, GPUs by number, the whole host; single cores are muted. */
export function scopeColor(scope: string): Color {
  if (scope === 'process') return classColors.gemm;
  if (scope === 'other_processes') return classColors.quantization;
  if (scope === 'inferscope') return 'serial';
  if (isCore(scope)) return 'muted';
  const gpu = /^gpu(\d+)/.exec(scope)?.[1];
  return gpu === undefined ? classColors.attention : lineColors[2 + (Number(gpu) % (lineColors.length - 2))]!;
}
export const isCore = (scope: string): boolean => /^cpu\d+$/.test(scope);
