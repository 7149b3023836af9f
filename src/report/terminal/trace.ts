import { phaseTime } from '../../model/headline-time.js';
import type { Document, Issue } from '../../model/document.js';
import type { PhaseKind, TraceResult } from '../../model/documents/trace.js';
import { formatCount, formatFigure, formatMs, formatPercent, noValue, unbroken } from '../format.js';
import { cutMiddle, kernelLabel } from '../../vocabulary/kernel-label.js';
import { classLabels } from '../../vocabulary/op-classes.js';
import { barLabel } from '../names.js';
import { collapsed, timesOf } from '../notices.js';
import { colour } from './colour.js';
import { type Explanation, explanationLines } from './explanation.js';
import { textTable } from './table.js';
import { hanging, inert, readingWidth, withPlainSpaces, wrap } from './text.js';
import { utilizationNotes, utilizationTable } from './utilization.js';

export interface TraceSummaryOptions {
  /** Where the HTML report was written; null when none was. */
  reportPath: string | null;
  /** Columns of the terminal; at most 80 are used. */
  width: number;
  /** Leads the summary: sentences, waterfall, findings; left out by who has none. */
  explanation?: Explanation | undefined;
  /** What other captures of the session say, between what leads and the timeline's own tables. */
  between?: readonly string[];
}

const kernelsShown = 10;
const kernelWidth = 33;
const cpuOperatorsShown = 12;

/** What the GPU waits for, as one reads it below "idle because". */
const causeLabels: Record<string, string> = {
  synchronization: 'host waits in a synchronising call',
  host: 'host between launches (Python, framework)',
  'host.start_up': 'program does not use the GPU yet',
  'host.shut_down': 'program is done with the GPU',
  launch_overhead: 'host inside the launch call',
  launch_latency: 'kernel starting (launch latency)',
  device_dependency: 'queued behind other work',
  unattributed: 'launch was not recorded',
};
const phaseLabel = (kind: PhaseKind): string =>
  kind === 'outside' ? 'no phase' : kind === 'other' ? 'step' : kind;
const right = (head: string) => ({ head, align: 'right' as const });
const ms = (ns: number): string => formatMs(ns / 1e6);

/** A title, and what stands below it; nothing when there is nothing. */
function section(title: string, body: string): string[] {
  return body === '' ? [] : ['', `  ${colour.bold(title)}`, body];
}

/** Of a program without a GPU the times alone. */
const withoutGpu = new Set(['phase', 'n', 'mean', 'sd', 'profiled']);

function phaseTable({ phases, source }: TraceResult, width: number): string {
  // Sizes below their phase: the mean over them is nobody's.
  const lines = phases.flatMap((phase) => [
    { ...phase, label: colour.bold(phaseLabel(phase.kind)) },
    ...phase.by_batch.map((size) => ({
      ...size,
      label: `  batch ${size.batch_size}`,
      instances: size.wall.count,
    })),
  ]);
  const withClean = phases.some((phase) => !phaseTime(phase).profiled);
  const all: [head: string, cell: (line: (typeof lines)[number]) => string][] = [
    ['phase', ({ label }) => label],
    ['n', ({ instances }) => formatCount(instances)],
    ['mean', (line) => formatMs(phaseTime(line).ms)],
    ['sd', ({ wall }) => (wall.sd_ns === null ? noValue : ms(wall.sd_ns))],
    ['busy', ({ busy_ns }) => ms(busy_ns)],
    ['idle', ({ idle_ns }) => ms(idle_ns)],
    ['idle', ({ idle_share }) => formatPercent(idle_share)],
    ['kernels', ({ kernels }) => formatMean(kernels)],
    ['launches', ({ launches }) => formatMean(launches)],
    ['profiled', ({ wall }) => ms(wall.mean_ns)],
  ];
  // The spread is that of the profiled times.
  const columns = all.filter(
    ([head]) => head !== (withClean ? 'sd' : 'profiled') && (source.gpu_used || withoutGpu.has(head)),
  );
  return textTable(
    columns.map(([head], i) => (i === 0 ? { head, flexible: true } : right(head))),
    lines.map((line) => columns.map(([, cell]) => cell(line))),
    { width },
  );
}

const formatMean = (value: number): string =>
  Number.isInteger(value) || value >= 100 ? formatCount(Math.round(value)) : value.toFixed(1);

function causeTable({ phases }: TraceResult, width: number): string {
  const idle = phases.filter((phase) => phase.idle_by_cause.length > 0);
  const rows = idle.flatMap((phase) =>
    phase.idle_by_cause
      .filter(({ share }, index) => share >= 0.005 || index === 0)
      .map(({ id, ns, share }, index) => [
        index === 0 ? phaseLabel(phase.kind) : '',
        causeLabels[id] ?? barLabel(id),
        ms(ns),
        formatPercent(share),
      ]),
  );
  if (rows.length === 0) return '';
  return textTable(
    [{ head: 'phase' }, { head: 'idle because', flexible: true }, right('mean'), right('of the phase')],
    rows,
    { width },
  );
}

function kernelTable({ kernels, kernels_total }: TraceResult, width: number): string {
  const rows = kernels
    .slice(0, kernelsShown)
    .map((kernel) => [
      cutMiddle(inert(kernelLabel(kernel.name || kernel.short_name, kernel.tile)), kernelWidth),
      classLabels[kernel.class],
      formatCount(kernel.count),
      ms(kernel.total_ns),
      formatPercent(kernel.share),
      ms(kernel.median_ns),
    ]);
  const table = textTable(
    [
      { head: 'kernel', flexible: true },
      { head: 'class' },
      right('count'),
      right('total'),
      right('share'),
      right('median'),
    ],
    rows,
    { width },
  );
  const rest = kernels_total.names - rows.length;
  return rest > 0 ? `${table}\n  … and ${formatCount(rest)} more` : table;
}

/** Kernel time of a mean instance by class, one column a phase. */
function classTable({ classes, phases }: TraceResult, width: number): string {
  const shown = classes.filter(
    ({ kind, rows }) =>
      rows.length > 0 && (phases.length === 1 ? kind === phases[0]!.kind : kind !== 'outside'),
  );
  // Few columns fit: those of a served model first.
  const order: (PhaseKind | null)[] = [
    'decode',
    'prefill',
    'mixed',
    'sampling',
    'load',
    'warmup',
    'other',
    'outside',
    null,
  ];
  const columns = shown.toSorted((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind)).slice(0, 3);
  const [whole] = classes;
  if (!whole || columns.length === 0) return '';
  // A class of none of these phases would be a row of nothing.
  const inside = whole.rows.filter((row) =>
    columns.some(({ rows: own }) => own.some((one) => one.class === row.class)),
  );
  const rows = inside.map((row) => [
    classLabels[row.class],
    ...columns.flatMap(({ rows: own }) => {
      const found = own.find((one) => one.class === row.class);
      return found ? [ms(found.per_instance_ns), formatPercent(found.share)] : ['', ''];
    }),
  ]);
  return textTable(
    [
      { head: 'class', flexible: true },
      ...columns.flatMap(({ kind }) => [right(kind === null ? 'all' : phaseLabel(kind)), right('')]),
    ],
    rows,
    { width },
  );
}

function copyTable({ copies }: TraceResult, width: number): string {
  const rows = copies
    .filter(({ phase }) => phase === null)
    .map((copy) => [
      [copy.kind, copy.memory === 'device' ? null : copy.memory].filter(Boolean).join(' '),
      formatCount(copy.count),
      formatFigure({ value: copy.bytes, unit: 'B', source: '' }),
      ms(copy.total_ns),
      formatFigure(copy.bandwidth_bytes_per_s),
      ms(copy.exclusive_ns),
    ]);
  if (rows.length === 0) return '';
  return textTable(
    [
      { head: 'copies', flexible: true },
      right('count'),
      right('bytes'),
      right('time'),
      right('rate'),
      right('exposed'),
    ],
    rows,
    { width },
  );
}

function launchTable({ launches }: TraceResult, width: number): string {
  const perLayer = launches.phases.some(({ launches_per_layer: one }) => one.value !== null);
  const rows = launches.phases
    .filter(({ launches: own }) => own > 0)
    .map((phase) => [
      phaseLabel(phase.kind),
      formatMean(phase.launches),
      formatMean(phase.kernels),
      formatMean(phase.graph_launches),
      ...(perLayer
        ? [phase.launches_per_layer.value === null ? '' : formatMean(phase.launches_per_layer.value)]
        : []),
      phase.api ? ms(phase.api.mean_ns) : noValue,
      phase.queue ? ms(phase.queue.median_ns) : noValue,
    ]);
  if (rows.length === 0) return '';
  return textTable(
    [
      { head: 'phase', flexible: true },
      right('launches'),
      right('kernels'),
      right('graphs'),
      ...(perLayer ? [right('a layer')] : []),
      right('call, mean'),
      right('queued, median'),
    ],
    rows,
    { width },
  );
}

/** Warnings and errors, a paragraph each. */
export function noticeLines(issues: Issue[], width: number): string[] {
  const words = { error: colour.red('error:'), warning: colour.yellow('warning:'), info: 'note:' };
  return collapsed(issues)
    .filter(({ severity }) => severity !== 'info')
    .flatMap((issue) => {
      const times = timesOf(issue);
      const text = `${inert(issue.text)}${times && ` (${times})`}`;
      return hanging(`  ${words[issue.severity]} `, text, width);
    });
}

/** What is at the end stays on the screen: the details first, then what they come to, then what to do. */
function gpuSections(data: TraceResult, width: number): string[] {
  return [
    ...section('Copies, whole capture', copyTable(data, width)),
    ...section('Launches, a mean instance', launchTable(data, width)),
    ...section('Operators by host and device time', operatorTable(data.operators, width)),
    ...section('Kernels by time, whole capture', kernelTable(data, width)),
    ...section('Kernel classes, a mean instance', classTable(data, width)),
    ...section('Why the GPU is idle', causeTable(data, width)),
    ...section('Phases, a mean instance', phaseTable(data, width)),
    ...utilizationSection(data, width),
  ];
}

/** Of a model that is known: without one there is nothing but times, which stand above. */
function utilizationSection({ utilization }: TraceResult, width: number): string[] {
  if (!utilization?.model) return [];
  const notes = utilizationNotes(utilization, width);
  return [
    ...section('Utilisation, a mean step', utilizationTable(utilization, width)),
    ...(notes.length > 0 ? ['', ...notes] : []),
  ];
}

function cpuSections(data: TraceResult, width: number): string[] {
  return [
    ...section('Operators by CPU time of their own', cpuOperatorTable(data.operators, width)),
    ...section('Phases, a mean instance', data.phases.length > 0 ? phaseTable(data, width) : ''),
    ...utilizationSection(data, width),
  ];
}

function cpuOperatorTable(operators: TraceResult['operators'], width: number): string {
  if (!operators || operators.rows.length === 0) return '';
  const all = operators.self_cpu_total_ns;
  return textTable(
    [
      { head: operators.phase ?? 'operator' },
      right('calls'),
      right('own'),
      right('share'),
      { head: 'most frequent shapes', flexible: true },
    ],
    operators.rows
      .slice(0, cpuOperatorsShown)
      .map((row) => [
        cutMiddle(inert(row.name), kernelWidth),
        formatCount(row.count),
        ms(row.self_cpu_ns),
        all ? formatPercent(row.self_cpu_ns / all) : noValue,
        inert(row.shapes[0]?.input_shapes ?? noValue),
      ]),
    { width },
  );
}

/** What a GPU session says at the end of `run`, `import` and `analyze`: at most 80 columns, readable without colour. */
export function traceSummary(
  document: Document<TraceResult>,
  { reportPath, width: columns, explanation, between = [] }: TraceSummaryOptions,
): string {
  const { data } = document;
  const width = readingWidth(columns);
  const { focus, attribution } = data.source;
  const device = data.devices.find((one) => one.focus);
  const title = [
    `inferscope ${document.tool_version}`,
    attribution.tool,
    data.source.gpu_used ? (device?.name ?? 'unknown GPU') : 'no GPU used',
    ...(data.devices.length > 1 ? [`rank ${focus.rank ?? noValue}, device ${focus.device ?? noValue}`] : []),
    inert(data.session.title),
  ].join(' · ');
  const sections = data.source.gpu_used ? gpuSections(data, width) : cpuSections(data, width);
  const lead = explanationLines([explanation?.sentences, explanation?.waterfall, explanation?.findings]);
  const others = between.flatMap((text) => ['', text]);
  const lines = [...wrap(title, width), ...lead, ...others, ...sections];
  const said = noticeLines(document.issues, width);
  if (said.length > 0) lines.push('', ...said);
  const why = data.source.why.flatMap((text) => hanging('  ', inert(text), width));
  if (why.length > 0) lines.push('', ...why);
  lines.push('', `  ${colour.bold('What it comes to')}`);
  for (const { text } of data.headlines) lines.push(...hanging('  • ', unbroken(inert(text)), width));
  if (data.next_steps.length > 0) {
    lines.push('', `  ${colour.bold('Next')}`);
    for (const { command, why: reason } of data.next_steps) {
      lines.push(...hanging('    ', command, width), ...hanging('      ', reason, width));
    }
  }
  lines.push('', `  Session ${data.session.id} kept${reportPath === null ? '' : ' · report:'}`);
  if (reportPath !== null) lines.push(`  ${reportPath}`);
  return withPlainSpaces(lines.join('\n'));
}

function operatorTable(operators: TraceResult['operators'], width: number): string {
  if (!operators || operators.rows.length === 0) return '';
  const { rows, phase } = operators;
  return textTable(
    [
      { head: phase ?? 'operator', flexible: true },
      right('calls'),
      right('host, own'),
      right('device'),
      { head: 'costs' },
    ],
    rows
      .slice(0, 8)
      .map((row) => [
        inert(row.name),
        formatCount(row.count),
        ms(row.self_cpu_ns),
        ms(row.device_ns),
        row.verdict,
      ]),
    { width },
  );
}
