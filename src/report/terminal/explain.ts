import type { Document } from '../../model/document.js';
import type { ExplainResult, Finding, StageWaterfall } from '../../model/documents/explain.js';
import { headlineTime, isProfiled } from '../../model/headline-time.js';
import { formatCount, formatMs, formatPercent, nbsp, unbroken } from '../format.js';
import {
  largestBars,
  leadingStages,
  numberedQueries,
  type ShownBar,
  shownBars,
  stageName,
  timeLines,
  gainHead,
  gainWords,
  shortName,
} from '../explain-rows.js';
import { nothingFound, slowestFirst, withheldWords } from '../../model/explain-words.js';
import { colour } from './colour.js';
import { hanging, inert, readingWidth, textBar, textWidth, withPlainSpaces, wrap } from './text.js';

export interface ExplainTextOptions {
  /** Columns of the terminal. */
  width: number;
  /** Only waterfalls and findings of this kind; null for all. */
  stage?: string | null;
  /** Findings that are shown. */
  limit?: number;
}

const barCells = 12;

/** What `inferscope explain` prints. */
export function explainText(
  { data }: Document<ExplainResult>,
  { width: columns, stage = null, limit = 10 }: ExplainTextOptions,
): string {
  const width = readingWidth(columns);
  const { full, brief } =
    stage === null
      ? leadingStages(data)
      : { full: data.stages.filter(({ kind }) => kind === stage), brief: [] };
  const found = data.findings.filter((one) => stage === null || one.stage === null || one.stage === stage);
  const queries = numberedQueries(data.findings);
  const shown = found.slice(0, limit);
  const lines = [
    ...sentenceLines(data, width),
    ...full.flatMap((one) => ['', ...waterfallLines(one, width)]),
    ...briefStageLines(brief, width),
    ...data.without_waterfall
      .filter((one) => stage === null || one.stage === null || one.stage === stage)
      .flatMap(({ stage: kind, reason }) => [
        '',
        ...hanging('  ', `no waterfall${kind === null ? '' : ` of ${kind}`}: ${reason}`, width),
      ]),
    ...shown.flatMap((one, index) => ['', ...findingLines(one, index + 1, queries, width)]),
    ...(found.length === 0 ? ['', ...hanging('  ', nothingFound(data), width)] : []),
    ...withheldLines(data, width),
    ...(found.length > shown.length ? ['', `  … and ${found.length - shown.length} more (--limit)`] : []),
    ...nextLines(data, width),
    ...(queries.length > 0
      ? ['', '  [sql n]: --sql n, typed behind the same command, prints the query']
      : []),
  ];
  return withPlainSpaces(lines.join('\n'));
}

/** For summaries of other commands: sentences, the first waterfall, the largest findings in two lines each. */
export function explainBrief({ data }: Document<ExplainResult>, columns: number, findings = 3): string {
  const width = readingWidth(columns);
  const [lead] = leadingStages(data).full;
  const lines = [
    ...sentenceLines(data, width),
    ...(lead ? ['', ...waterfallLines(lead, width)] : []),
    ...briefFindings(data, width, findings),
    ...withheldLines(data, width),
    ...(data.stages.length + data.findings.length > 0
      ? ['', ...moreLines(`inferscope explain --session ${nameOf(data)}`, width)]
      : []),
  ];
  return withPlainSpaces(lines.join('\n'));
}

/** For a summary whose own document names no session. */
export const titleLine = ({ data, tool_version }: Document<ExplainResult>, columns: number): string =>
  withPlainSpaces(
    wrap(`inferscope${nbsp}${tool_version} · ${inert(data.session.title)}`, readingWidth(columns)).join('\n'),
  );

/** The command whole on one line, to be copied. */
function moreLines(command: string, width: number): string[] {
  const what = '  evidence and all findings:';
  const one = `${what} ${command}`;
  return textWidth(one) <= width ? [one] : [what, `    ${command}`];
}

/** The largest findings, each with its change. */
export function briefFindings(data: ExplainResult, width: number, shown = 3): string[] {
  return data.findings
    .filter(({ severity, hidden_by }) => severity !== 'info' && hidden_by === null)
    .slice(0, shown)
    .flatMap((one, index) => [
      '',
      ...titleLines(one, index + 1, width),
      ...hanging('     change:   ', unbroken(inert(one.change.text)), width),
    ]);
}

export function withheldLines(data: ExplainResult, width: number): string[] {
  const words = withheldWords(data);
  return words === null ? [] : ['', ...hanging('  ', words, width)];
}

const nameOf = ({ session }: ExplainResult): string => session.name ?? session.id;

export const sentenceLines = ({ sentences }: ExplainResult, width: number): string[] =>
  sentences.flatMap((sentence) => hanging('  ', unbroken(inert(sentence)), width));

/** A bar chart a stage: ids, ms of a mean instance, and their size to one scale. */
function waterfallLines(stage: StageWaterfall, width: number): string[] {
  const headline = headlineTime(stage);
  const measured = headline.value ?? 0;
  const { ci95, n = stage.instances } = headline.value === null ? {} : headline;
  const profiled = isProfiled(stage) ? ' under the profiler' : '';
  const spread = ci95 ? `, ±${nbsp}${formatMs((ci95[1] - ci95[0]) / 2)}` : '';
  const roofline =
    stage.roofline_ms.value === null ? '' : ` — the roofline allows ${formatMs(stage.roofline_ms.value)}`;
  const head = `${inert(stageName(stage))}${stage.point === null ? '' : ':'} ${formatMs(measured)}${profiled} (n${nbsp}=${nbsp}${formatCount(headline === stage.measured_ms ? stage.instances : n)}${spread})${roofline}`;
  const bars = shownBars(stage);
  const full = Math.max(...bars.map(({ ms }) => ms), 0);
  const totals = timeLines(stage);
  const names = [...bars.map(shownId), ...totals.map(({ name }) => name)];
  const idWidth = Math.max(12, ...names.map(textWidth)) + 1;
  const ranks =
    stage.ranks.length > 1
      ? hanging(
          '    ',
          `${slowestFirst(stage) ? 'slowest' : 'bars of the first'} of ${stage.ranks.length}: ${stage.ranks
            .map(
              ({ rank, device, measured_ms }) =>
                `rank ${rank ?? '–'}/GPU ${device ?? '–'} ${formatMs(measured_ms)}`,
            )
            .join(', ')}`,
          width,
        )
      : [];
  const missing =
    stage.roofline_ms.value === null
      ? hanging('    ', `no roofline: ${stage.roofline_ms.reason.text}`, width)
      : [];
  return [
    ...hanging('  ', head, width).map((line) => colour.bold(line)),
    ...ranks,
    '',
    ...bars.flatMap((bar) => barLines(bar, { full, idWidth, measured }, width)),
    ...totals.map(
      ({ name, ms }) => `    ${name.padEnd(idWidth)}${plainMs(ms, measured).padStart(9)}${nbsp}ms`,
    ),
    ...missing,
  ];
}

/** Stages that are not set out bar by bar: their time, and where most of it goes. */
function briefStageLines(stages: readonly StageWaterfall[], width: number): string[] {
  if (stages.length === 0) return [];
  const names = stages.map((stage) => inert(stageName(stage)));
  const nameWidth = Math.min(28, Math.max(...names.map(textWidth)));
  const times = stages.map((stage) => formatMs(headlineTime(stage).value ?? 0));
  const timeWidth = Math.max(...times.map(textWidth));
  const counts = stages.map(({ instances }) => `n${nbsp}=${nbsp}${formatCount(instances)}`);
  const countWidth = Math.max(...counts.map(textWidth));
  return [
    '',
    `  ${colour.bold('other stages')} (--stage shows their bars)`,
    '',
    ...stages.map((stage, index) => {
      const name = names[index]!;
      const head = `    ${cutTo(name, nameWidth).padEnd(nameWidth)}  ${times[index]!.padStart(timeWidth)}  ${counts[index]!.padEnd(countWidth)}  `;
      const bars = largestBars(stage).map(({ id, share }) => `${inert(id)} ${formatPercent(share)}`);
      return `${head}${cutTo(bars.join(', '), width - textWidth(head))}`.trimEnd();
    }),
  ];
}

const cutTo = (text: string, room: number): string =>
  textWidth(text) > room ? `${[...text].slice(0, Math.max(0, room - 1)).join('')}…` : text;

const shownId = (bar: ShownBar): string => inert(shortName(bar));

function barLines(
  bar: ShownBar,
  { full, idWidth, measured }: { full: number; idWidth: number; measured: number },
  width: number,
): string[] {
  const id = shownId(bar);
  const drawn = textBar(bar.ms, full, barCells).padEnd(barCells);
  const first = `    ${id.padEnd(idWidth)}${plainMs(bar.ms, measured).padStart(9)}${nbsp}ms  ${drawn}  `;
  const note = noteOf(bar);
  if (note === '') return [first.trimEnd()];
  const room = width - textWidth(first);
  const cut = cutTo(note, room);
  const negative = bar.ms < 0 && bar.note !== null ? hanging('      ', bar.note, width) : [];
  return [(bar.ms < 0 ? first : `${first}${cut}`).trimEnd(), ...negative];
}

function noteOf(bar: ShownBar): string {
  const [largest] = bar.parts;
  if (bar.ms < 0 && bar.note !== null) return bar.note;
  if (/^(synchronization|host)/.test(bar.id) && largest) return inert(largest.label);
  if (bar.count === null || bar.count === 0) return '';
  const count = Math.max(1, Math.round(bar.count));
  const [one, more] = bar.id.startsWith('launch')
    ? ['launch', 'launches']
    : bar.id.startsWith('exposed_copy')
      ? ['copy', 'copies']
      : /^(inefficiency|nonessential|kernels|exposed_comm)/.test(bar.id)
        ? ['kernel', 'kernels']
        : ['gap', 'gaps'];
  const each = bar.id === 'launch_overhead' ? `, ${formatMs(bar.ms / bar.count)} each` : '';
  return `${formatCount(count)} ${count === 1 ? one : more}${each}`;
}

/** Milliseconds without their unit, one scale for all bars of a stage: two decimals, more where they would say nothing. */
function plainMs(ms: number, wholeMs: number): string {
  const decimals = wholeMs >= 0.5 ? 2 : wholeMs >= 0.005 ? 4 : 6;
  const text = Math.abs(ms).toFixed(decimals);
  return ms < 0 && /[1-9]/.test(text) ? `−${text}` : text;
}

function titleLines(finding: Finding, index: number, width: number): string[] {
  const { gain, severity } = finding;
  const first = `  ${String(index).padEnd(3)}`;
  const tail = gain && gain.expected_ms > 0 ? gainHead(gain) : '';
  const room = width - (tail === '' ? 0 : textWidth(tail) + 2);
  const lines = hanging(first, unbroken(inert(finding.title)), room);
  const [head = '', ...rest] = lines;
  const paint = severity === 'high' ? colour.red : severity === 'medium' ? colour.yellow : colour.bold;
  const gap = ' '.repeat(Math.max(2, width - textWidth(head) - textWidth(tail)));
  return [`${paint(head)}${tail === '' ? '' : `${gap}${colour.bold(tail)}`}`, ...rest.map(paint)];
}

function findingLines(finding: Finding, index: number, queries: readonly string[], width: number): string[] {
  const field = (name: string, text: string): string[] =>
    hanging(`     ${(name === '' ? '' : `${name}:`).padEnd(10)}`, unbroken(inert(text)), width);
  const { gain, change } = finding;
  return [
    ...titleLines(finding, index, width),
    ...finding.evidence.flatMap(({ text, sql }, at) =>
      field(at === 0 ? 'evidence' : '', `${text}${sql === null ? '' : ` [sql ${queries.indexOf(sql) + 1}]`}`),
    ),
    ...field('cause', finding.cause),
    ...field('change', change.text),
    ...(change.example === null
      ? []
      : change.example.split('\n').map((line) => `               ${inert(line)}`)),
    ...(gain ? field('gain', `${gainWords(gain)}: ${gain.assumption}`) : []),
    ...(finding.hidden_by === null
      ? []
      : field(
          'hidden',
          `what it costs is counted in ${finding.hidden_by}, or shows only once that is mended`,
        )),
    ...field('check', finding.check),
    colour.dim(`     ${finding.severity} · ${finding.id} · confidence ${finding.confidence}`),
  ];
}

function nextLines({ next_steps }: ExplainResult, width: number): string[] {
  if (next_steps.length === 0) return [];
  return [
    '',
    `  ${colour.bold('Next')}`,
    ...next_steps.flatMap(({ command, why }) => [
      // Whole, to be copied: the terminal folds what is longer than it.
      `    ${inert(command)}`,
      ...hanging('        ', unbroken(inert(why)), width),
    ]),
  ];
}
