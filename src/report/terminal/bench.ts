import type { Document, Issue } from '../../model/document.js';
import type { BenchAnswer, BenchFlag, BenchResult, BenchVariant } from '../../model/documents/bench.js';
import { nbsp, unbroken } from '../format.js';
import { collapsed, rangedText } from '../notices.js';
import { missingReasons, plural } from '../words.js';
import { latencyTables, outcomeLines, roofTable, sequenceTable, throughputTable } from './bench-tables.js';
import { colour } from './colour.js';
import { type Explanation, explanationLines } from './explanation.js';
import { hanging, inert, readingWidth, withPlainSpaces, wrap } from './text.js';

/** A title, and what stands below it; nothing when there is nothing. */
function section(title: string, body: readonly string[]): string[] {
  const lines = body.filter((one) => one !== '');
  return lines.length === 0 ? [] : ['', `  ${colour.bold(title)}`, ...lines];
}

function title({ data, tool_version }: Document<BenchResult>): string {
  const { engine, protocol, parts } = data;
  const traits = [
    engine.weights === 'unknown' ? null : `${engine.weights} weights`,
    engine.dtype,
    engine.quantization,
  ];
  const known = traits.filter((one) => one !== null);
  const where = engine.device_name ?? engine.device;
  const devices = engine.tensor_parallel_size > 1 ? `${engine.tensor_parallel_size} × ` : '';
  const threads = engine.threads === null ? '' : `, ${plural(engine.threads, 'thread')}`;
  const version = engine.version === null ? '' : `${nbsp}${engine.version}`;
  return [
    `inferscope${nbsp}${tool_version}`,
    `bench ${parts.join(' + ')}`,
    inert(`${engine.model}${known.length > 0 ? ` (${known.join(', ')})` : ''}`),
    inert(`${engine.name}${version} on ${devices}${where}${threads}`),
    `${protocol.launches === 1 ? '1 launch' : `${protocol.launches} launches`} × ${plural(protocol.repeats, 'repeat')}`,
    inert(protocol.sampling),
  ].join(' · ');
}

function answerLines(answers: readonly BenchAnswer[], width: number): string[] {
  return answers.flatMap(({ question, answer }) => [
    `  ${colour.bold(inert(question))}`,
    ...hanging('    ', unbroken(inert(answer)), width),
  ]);
}

/** A flag that several points have is said once, with the range of its numbers and the points. */
function flagLines({ points, flags }: BenchVariant, width: number): string[] {
  const groups = new Map<string, { flag: BenchFlag; texts: string[]; points: string[] }>();
  const put = (flag: BenchFlag, point: string | null) => {
    const key = [flag.severity, flag.code, flag.text.replaceAll(/\d+(?:\.\d+)?/g, '0')].join('\n');
    const group = groups.get(key) ?? { flag, texts: [], points: [] };
    group.texts.push(flag.text);
    if (point !== null) group.points.push(point);
    groups.set(key, group);
  };
  for (const flag of flags) put(flag, null);
  for (const point of points) for (const flag of point.flags) put(flag, point.point);
  const order: BenchFlag['severity'][] = ['warning', 'info', 'good'];
  const marks = { warning: colour.yellow('warning:'), info: 'note:', good: colour.green('good:') };
  return [...groups.values()]
    .toSorted((x, y) => order.indexOf(x.flag.severity) - order.indexOf(y.flag.severity))
    .flatMap(({ flag, texts, points: at }) => {
      const where =
        at.length === 0
          ? ''
          : ` (${at.length > 4 ? `${at.slice(0, 3).join(', ')} and ${at.length - 3} more` : at.join(', ')})`;
      return hanging(`  ${marks[flag.severity]} `, unbroken(inert(`${rangedText(texts)}${where}`)), width);
    });
}

function fitLines({ fits }: BenchVariant, width: number): string[] {
  return fits.flatMap(({ x, y, unit, coefficients, coefficients_ci95, rms_error, r2, n }) => {
    const terms = coefficients.map((value, power) => {
      const size = power === 0 ? '' : ` × ${x}${power === 2 ? '²' : ''}`;
      return `${value.toPrecision(3).replace('-', '−')}${size}`;
    });
    const slope = coefficients.length === 2 ? coefficients_ci95?.[1] : undefined;
    const flat = slope !== undefined && slope[0] <= 0 && slope[1] >= 0;
    const text = `${y} = ${terms.join(' + ').replaceAll('+ −', '− ')} ${unit} (error ${(100 * rms_error).toFixed(1)} %, R² ${r2.toFixed(4)}, n = ${n}${flat ? '; slope not different from 0' : ''})`;
    return hanging('  ', unbroken(text), width);
  });
}

function variantLines(variant: BenchVariant, several: boolean, width: number): string[] {
  const { points, launches } = variant;
  const of = (part: BenchResult['parts'][number]) => points.filter(({ parts }) => parts.includes(part));
  const head = several
    ? [
        '',
        `  ${colour.bold(colour.underline(inert(variant.label)))} · ${launches === 1 ? '1 launch' : `${launches} launches`}`,
      ]
    : [];
  return [
    ...head,
    ...latencyTables(of('latency'), width).flatMap((table) => section(table.title, [table.text])),
    ...section('Throughput', [throughputTable(of('throughput'), width)]),
    ...section('Sequence length', [sequenceTable(of('sequence'), width)]),
    ...section('Against the roofline', [roofTable(points, width)]),
    ...section('Not measured', outcomeLines(points, width)),
    ...section('Fits', fitLines(variant, width)),
    ...section('Health', flagLines(variant, width)),
    ...section('What it comes to', answerLines(variant.answers, width)),
  ];
}

/** What the engine could not measure, and figures that are missing everywhere, each reason once. */
function missingLines({ cannot, variants }: BenchResult, width: number): string[] {
  const byText = new Map<string, string[]>();
  for (const { figure, text } of cannot)
    byText.set(text, [...(byText.get(text) ?? []), figure.replaceAll('_', ' ')]);
  const told = [...byText].map(([text, figures]) => `${figures.join(', ')}: ${text}`);
  const measured = variants.flatMap(({ points }) => points.filter(({ outcome }) => outcome === 'measured'));
  const first = measured[0];
  const everywhere = first
    ? missingReasons([
        ['GPU utilisation', first.machine.gpu_utilization_percent],
        ['power', first.machine.power_w],
        ['memory', first.machine.memory_bytes],
        ['idle share', first.device_work.decode_idle_share],
        ['MFU', first.model_utilization.prefill_mfu],
        ['MBU', first.model_utilization.decode_mbu],
      ]).filter((line) => ![...byText.keys()].some((text) => line.endsWith(text)))
    : [];
  return [...told, ...everywhere].flatMap((text) => hanging('  ', inert(text), width));
}

function issueLines(issues: Issue[], width: number): string[] {
  const marks = { error: colour.red('error:'), warning: colour.yellow('warning:'), info: 'note:' };
  return collapsed(issues)
    .filter(({ severity, code }) => severity !== 'info' || code === 'one_launch')
    .flatMap(({ severity, text }) => hanging(`  ${marks[severity]} `, inert(text), width));
}

/**
 * What a bench command prints: tables of each part, what the figures come to, health, and what could not be measured. At
 * most 80 columns, readable without colour. Where files are is for the command to say.
 */
export function benchText(
  document: Document<BenchResult>,
  columns: number,
  explanation?: Explanation,
): string {
  const { data, issues } = document;
  const width = readingWidth(columns);
  const several = data.variants.length > 1;
  const status =
    data.session.status === 'complete'
      ? []
      : ['', `  ${colour.yellow(`The run was ${data.session.status}: these are the figures it left.`)}`];
  const lines = [
    ...wrap(title(document), width),
    ...status,
    ...explanationLines([explanation?.sentences, explanation?.waterfall, explanation?.findings]),
    ...data.variants.flatMap((variant) => variantLines(variant, several, width)),
    ...section('Between variants', answerLines(data.answers, width)),
    ...section('Could not be measured', missingLines(data, width)),
  ];
  const said = issueLines(issues, width);
  if (said.length > 0) lines.push('', ...said);
  lines.push('', `  Session ${data.session.id}`);
  return withPlainSpaces(lines.join('\n'));
}
