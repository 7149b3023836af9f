import type { Document } from '../../model/document.js';
import type { CompareResult } from '../../model/documents/compare.js';
import {
  changeWords,
  countWords,
  letter,
  notRecorded,
  ratioWords,
  sessionLine,
  statusWords,
} from '../compare-words.js';
import { formatFigureWithInterval, formatMs, formatPercent, noValue, unbroken } from '../format.js';
import { cutMiddle, kernelLabel } from '../../vocabulary/kernel-label.js';
import { classLabels } from '../../vocabulary/op-classes.js';
import { collapsed } from '../notices.js';
import { colour } from './colour.js';
import { textTable } from './table.js';
import { hanging, inert, withPlainSpaces } from './text.js';

const kernelsShown = 12;
const nameWidth = 30;
const right = (head: string) => ({ head, align: 'right' as const });

/**
 * `session compare` in the terminal: at most 80 columns for two sessions, as wide as they need for a matrix of more.
 * Without colour nothing is lost.
 */
export function compareSummary(
  { data, issues, tool_version }: Document<CompareResult>,
  columns: number,
): string {
  const width = Math.min(data.sessions.length > 3 ? 120 : 80, columns);
  const pair = data.sessions.length === 2;
  const lines = [`inferscope ${tool_version} · session compare`, ''];
  for (const [i, session] of data.sessions.entries()) {
    lines.push(...hanging(`  `, inert(sessionLine(session, i)), width));
  }
  lines.push('');
  for (const { text } of data.headlines) lines.push(...hanging('  • ', unbroken(inert(text)), width));
  const put = (title: string, body: string) => {
    if (body !== '') lines.push('', `  ${colour.bold(title)}`, body);
  };
  put('Stages, a mean instance', stageTable(data, width, pair));
  put('Classes, a mean instance', classTable(data, width, pair));
  put(
    `${data.what === 'trace' ? 'Kernels' : 'Operators'} that changed most, a mean instance`,
    kernelTable(data, width, pair),
  );
  put('GEMM tiles', tileTable(data, width));
  put('What else differs', environmentLines(data, width));
  const words = { error: colour.red('error:'), warning: colour.yellow('warning:'), info: 'note:' };
  const said = collapsed(issues).flatMap(({ severity, text }) =>
    hanging(`  ${words[severity]} `, inert(text), width),
  );
  if (said.length > 0) lines.push('', ...said);
  if (data.stages.some(({ changes }) => changes.some((change) => change?.significant === false))) {
    lines.push(
      '',
      ...hanging('  ', '? the 95 % intervals of both leave it open whether anything changed', width),
    );
  }
  return withPlainSpaces(lines.join('\n'));
}

function stageTable({ stages, sessions }: CompareResult, width: number, pair: boolean): string {
  const rows = stages.flatMap(({ phase, values, changes }) => {
    const row = (label: string, cells: string[], change = '') => [label, ...cells, ...(pair ? [change] : [])];
    const times = values.map((value) => (value ? formatFigureWithInterval(value.duration_ms) : noValue));
    const made = [row(phase, times, changeWords(changes[1] ?? null))];
    const told = (
      label: string,
      of: (value: NonNullable<(typeof values)[number]>) => string | null,
      changed = '',
    ) => {
      const cells = values.map((value) => (value ? of(value) : null));
      if (cells.some((cell) => cell !== null))
        made.push(
          row(
            `  ${label}`,
            cells.map((cell) => cell ?? noValue),
            changed,
          ),
        );
    };
    const change = (of: (value: NonNullable<(typeof values)[number]>) => number | null): string => {
      const [from, to] = [values[0], values[1]].map((value) => (value ? of(value) : null));
      return from && to ? ratioWords(to / from) : '';
    };
    const sizes = new Set(values.map((value) => value?.tokens ?? null));
    if (sizes.size > 1) {
      told('tokens', ({ tokens }) => (tokens === null ? null : countWords(tokens)));
      told(
        'per token',
        ({ ms_per_token: one }) => (one.value === null ? null : formatMs(one.value)),
        change(({ ms_per_token: one }) => one.value),
      );
    }
    told(
      'tok/s',
      ({ tokens_per_s: one }) => (one.value === null ? null : countWords(one.value)),
      change(({ tokens_per_s: one }) => one.value),
    );
    told('MFU', ({ mfu }) => (mfu.value === null ? null : formatPercent(mfu.value)));
    told('idle', ({ idle_share }) => (idle_share === null ? null : formatPercent(idle_share)));
    told('kernels', ({ kernels }) => (kernels === null ? null : countWords(kernels)));
    told('launches', ({ launches }) => (launches === null ? null : countWords(launches)));
    return made;
  });
  if (rows.length === 0) return '';
  const heads = sessions.map((_, i) => right(letter(i)));
  return textTable([{ head: 'stage', flexible: true }, ...heads, ...(pair ? [right('change')] : [])], rows, {
    width,
  });
}

function classTable({ classes, sessions, stages }: CompareResult, width: number, pair: boolean): string {
  const shown = classes.filter(({ values }) => values.some((value) => (value?.share ?? 0) >= 0.005));
  let last = '';
  const rows = shown.map(({ phase, class: opClass, values, changes }) => {
    const head = phase === last ? '' : phase;
    last = phase;
    const cells = values.map((value, i) => (value ? formatMs(value.ms) : notRecorded(stages, phase, i)));
    return [head, classLabels[opClass], ...cells, ...(pair ? [changeWords(changes[1] ?? null)] : [])];
  });
  if (rows.length === 0) return '';
  return textTable(
    [
      { head: 'phase' },
      { head: 'class', flexible: true },
      ...sessions.map((_, i) => right(letter(i))),
      ...(pair ? [right('change')] : []),
    ],
    rows,
    { width },
  );
}

function kernelTable(data: CompareResult, width: number, pair: boolean): string {
  const { kernels, sessions } = data;
  const changed = kernels.filter(({ status }) => status !== 'same' || !pair).slice(0, kernelsShown);
  if (changed.length === 0) return '';
  // By phase, and within it by what changed most: a column for the phase would leave no room for the names.
  const phases = [...new Set(changed.map(({ phase }) => phase))];
  const sorted = phases.flatMap((phase) => changed.filter((row) => row.phase === phase));
  const rows = sorted.map(({ name, short_name, values, changes, status }) => [
    cutMiddle(inert(data.what === 'trace' ? kernelLabel(name || short_name) : short_name), nameWidth),
    ...values.map((value) =>
      value ? `${countWords(value.count)} × ${formatMs(value.mean_ns / 1e6)}` : noValue,
    ),
    ...(pair ? [deltaWords(changes[1]?.delta_ms), statusWords[status]] : []),
  ]);
  const [head = '', ...lines] = textTable(
    [
      { head: 'name', flexible: true },
      ...sessions.map((_, i) => right(letter(i))),
      ...(pair ? [right('change'), { head: '' }] : []),
    ],
    rows,
    { width, indent: 4 },
  ).split('\n');
  const titled = lines.flatMap((line, i) =>
    sorted[i]!.phase === sorted[i - 1]?.phase ? [line] : [`  ${sorted[i]!.phase}`, line],
  );
  return [head, ...titled].join('\n');
}

function deltaWords(delta: number | undefined): string {
  if (delta === undefined) return noValue;
  return `${delta > 0 ? '+' : ''}${formatMs(delta)}`;
}

function tileTable({ gemm_tiles, sessions }: CompareResult, width: number): string {
  if (gemm_tiles.length === 0) return '';
  const rows = gemm_tiles
    .slice(0, 8)
    .map(({ phase, count, tiles }) => [phase, String(count), ...tiles.map((tile) => inert(tile))]);
  const heads = sessions.map((_, i) => ({ head: letter(i), flexible: i === sessions.length - 1 }));
  return textTable([{ head: 'phase' }, right('GEMMs'), ...heads], rows, { width });
}

/** One line a difference: "--mode cudagraph" beside another command line fits no column. */
function environmentLines({ environment }: CompareResult, width: number): string {
  return environment
    .flatMap(({ label, values, could_explain }) => {
      const why = could_explain === null ? '' : ` (${could_explain})`;
      const told = values.map((value) => inert(value ?? noValue)).join(' → ');
      return hanging(`  ${label}: `, `${told}${why}`, width);
    })
    .join('\n');
}
