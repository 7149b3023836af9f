import type { Document } from '../../model/document.js';
import type { ValidatedProfile, Validation, ValidationHistory } from '../../model/documents/validate.js';
import { formatBytes, formatPercent, nbsp, noValue } from '../format.js';
import { componentWords } from '../memory-words.js';
import {
  errorCells,
  errorHeads,
  groupWords,
  notMeasuredWords,
  resultWords,
  runWords,
  signedBytes,
  signedShare,
} from '../validate-words.js';
import { colour } from './colour.js';
import { textTable, type TextColumn } from './table.js';
import { hanging, inert, readingWidth, textWidth, withPlainSpaces, wrap } from './text.js';

const right = (head: string): TextColumn => ({ head, align: 'right' });
/** Profiles in the terminal and the summary; the CSV has all. */
const worstShown = 10;

/** What `inferscope validate` prints, and the text of its batch summary. */
export function validateText(made: Document<Validation>, { width: columns }: { width: number }): string {
  const { data, tool_version } = made;
  const width = readingWidth(columns);
  const title = `inferscope${nbsp}${tool_version} · validate · calculator against ${data.profiles.length} measured profile${data.profiles.length === 1 ? '' : 's'}`;
  const verdict =
    data.result === 'passed' ? colour.green('passed') : colour.red(data.result.replace('_', ' '));
  const lines = [...wrap(title, width), '', ...hanging(`  ${verdict}: `, resultWords(data), width)];
  if (data.counts.compared > 0) lines.push('', ...errorLines(data, width), '', ...worstLines(data, width));
  lines.push(
    ...notMeasuredLines(data, width),
    ...otherLines(data, width),
    ...recommendationLines(data, width),
  );
  return withPlainSpaces(lines.join('\n'));
}

function errorLines(data: Validation, width: number): string[] {
  const { share, bytes } = data.component_tolerance;
  const rows = [
    ...data.components.map((row) => [componentWords[row.component] ?? row.component, ...errorCells(row)]),
    ['total', ...errorCells(data.total)],
  ];
  const groups = data.groups.map((row) => [groupWords[row.by], inert(row.value), ...errorCells(row)]);
  return [
    ...hanging(
      '  ',
      `Errors, estimated − measured, of the measured (within: ${formatPercent(data.tolerance)} of the total, ${formatPercent(share)} or ${formatBytes(bytes)} of a component)`,
      width,
    ).map((line) => colour.bold(line)),
    '',
    textTable([{ head: 'component' }, ...errorHeads.map(right)], rows, { width }),
    '',
    textTable([{ head: 'total by' }, { head: '', flexible: true }, ...errorHeads.map(right)], groups, {
      width,
    }),
  ];
}

function worstLines({ profiles }: Validation, width: number): string[] {
  const compared = profiles.filter(({ status }) => status === 'compared');
  const shown = compared.slice(0, worstShown);
  const rows = shown.map((profile) => [
    inert(runWords(profile)),
    formatBytes(profile.total!.measured_bytes),
    formatBytes(profile.total!.estimated_bytes),
    signedShare(profile.total!.error_share),
    profile.total!.within ? '' : 'beyond',
  ]);
  const head =
    shown.length < compared.length ? `Worst ${shown.length} of ${compared.length}` : 'Profiles, worst first';
  return [
    colour.bold(`  ${head}`),
    '',
    textTable(
      [{ head: 'run', flexible: true }, right('measured'), right('estimated'), right('error'), { head: '' }],
      rows,
      { width },
    ),
    ...explanations(shown, width),
  ];
}

/** Of what is beyond its tolerance, in the total or in a component. */
function explanations(profiles: readonly ValidatedProfile[], width: number): string[] {
  const lines = profiles.flatMap((profile) => {
    const beyond = profile.components.filter(({ within }) => !within);
    if (profile.total!.within && beyond.length === 0) return [];
    const parts = beyond.map(
      ({ component, error_bytes, error_share }) =>
        `${componentWords[component]} ${signedBytes(error_bytes)}${error_share === null ? '' : ` (${signedShare(error_share)})`}`,
    );
    const text = profile.total!.within ? `beyond: ${parts.join(', ')}` : (profile.explanation ?? noValue);
    return hanging(`  ${inert(profile.model)}: `, inert(text), width);
  });
  return lines.length > 0 ? ['', ...lines] : [];
}

function otherLines({ profiles }: Validation, width: number): string[] {
  const lines = profiles
    .filter(({ reasons }) => reasons.length > 0)
    .flatMap(({ source, status, reasons }) => {
      const first = status === 'compared' ? '  note ' : `  ${status} `;
      const [name, why] = [`${inert(source)}:`, inert(reasons.join(' '))];
      // A path is not to be broken where a line of its own holds it.
      return textWidth(first) + textWidth(name) <= width
        ? hanging(first, `${name} ${why}`, width)
        : [first.trimEnd(), ...hanging('    ', name, width), ...hanging('    ', why, width)];
    });
  return lines.length > 0 ? ['', ...lines] : [];
}

/** What only a formula gave is in no error. */
function notMeasuredLines({ profiles }: Validation, width: number): string[] {
  const words = notMeasuredWords(profiles);
  if (words === null) return [];
  return ['', ...hanging('  not measured: ', words, width)];
}

function recommendationLines({ recommendations, counts }: Validation, width: number): string[] {
  if (recommendations.length === 0) {
    const none =
      'Recommendations: none. No constant of the calculator is off by more than these profiles scatter.';
    return counts.compared > 0 ? ['', ...hanging('  ', none, width)] : [];
  }
  return [
    '',
    colour.bold('  Recommendations: constants of the calculator that are off'),
    '  (src/llm/memory-constants.ts)',
    ...recommendations.flatMap(({ text }) => hanging('  ', text, width)),
  ];
}

/** What `inferscope validate --history` prints: one row a session, oldest first. */
export function historyText(
  made: Document<ValidationHistory>,
  { width: columns }: { width: number },
): string {
  const { sessions } = made.data;
  const width = readingWidth(columns);
  const rows = sessions.map(({ id, counts, total, result, components }) => [
    id,
    String(counts.compared),
    signedShare(total.mean_share),
    total.mean_absolute_share === null ? noValue : formatPercent(total.mean_absolute_share),
    signedShare(total.worst_share),
    ...(['kv_cache', 'activations'] as const).map((name) =>
      signedShare(components.find(({ component }) => component === name)?.mean_share ?? null),
    ),
    result.replace('_', ' '),
  ]);
  const [before, last] = sessions.slice(-2);
  const trend =
    before && last && before.total.mean_absolute_share !== null && last.total.mean_absolute_share !== null
      ? `Mean error of the total: ${formatPercent(before.total.mean_absolute_share)} before, ${formatPercent(last.total.mean_absolute_share)} now.`
      : 'A trend needs two sessions: run inferscope validate again after a change.';
  return withPlainSpaces(
    [
      `inferscope${nbsp}${made.tool_version} · validate · ${sessions.length} session${sessions.length === 1 ? '' : 's'}, oldest first`,
      '',
      textTable(
        [
          { head: 'session', flexible: true },
          ...['n', 'mean', 'mean |e|', 'worst', 'KV cache', 'activations'].map(right),
          { head: 'result' },
        ],
        rows,
        { width },
      ),
      '',
      ...hanging('  ', trend, width),
    ].join('\n'),
  );
}
