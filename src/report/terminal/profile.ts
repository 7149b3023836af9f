import { colour } from './colour.js';
import type { Document, Issue } from '../../model/document.js';
import type { MemoryResult, ProfileResult, StageResult } from '../../model/documents/profile.js';
import type { Figure } from '../../model/figure.js';
import {
  formatBytes,
  formatFigure,
  formatFigureWithInterval,
  formatFigureWithSpread,
  formatMsColumn,
  isAccountingFault,
  nbsp,
} from '../format.js';
import { barShareText, shownBars } from '../bars.js';
import { componentNames } from '../names.js';
import { notices, timesOf } from '../notices.js';
import { boundWords, identityWords, memoryParts, missingReasons, stageNamed, stageUnit } from '../words.js';
import { type Explanation, explanationLines } from './explanation.js';
import { textTable } from './table.js';
import { hanging, inert, readingWidth, textBar, textWidth, withPlainSpaces, wrap } from './text.js';

export interface SummaryOptions {
  /** Where the HTML report was written; null when none was. */
  reportPath: string | null;
  /** Columns of the terminal; at most 80 are used. */
  width: number;
  /** Three sentences and the findings, before and after the waterfall; left out by who has none. */
  explanation?: Explanation | undefined;
}

const barCells = 24;

const label = (text: string): string => `  ${colour.bold(text.padEnd(13))}`;

/** "71 %", or "112 %!": what is wrong with it stands below, in an error of its own. */
function utilizationWords(figure: Figure): string {
  return isAccountingFault(figure) ? colour.red(`${formatFigure(figure)}!`) : formatFigure(figure);
}

function stageRow(stage: StageResult): string[] {
  const time = `${formatFigure(stage.duration_ms)}${stageUnit(stage)}`;
  if (stage.kind === 'sampling') return [stage.kind, time, '', '', '', ''];
  return [
    colour.bold(stage.kind),
    time,
    formatFigure(stage.tokens_per_s),
    `MFU ${utilizationWords(stage.mfu)}`,
    `MBU ${utilizationWords(stage.mbu)}`,
    boundWords(stage),
  ];
}

function stageTable(stages: StageResult[], width: number): string {
  const columns = ['left', 'right', 'right', 'left', 'left', 'left'].map((align) => ({
    head: '',
    align: align as 'left' | 'right',
  }));
  const table = textTable(columns, stages.map(stageRow), { width });
  if (table.split('\n').every((line) => textWidth(line) <= width)) return table;
  // A narrow terminal: one part after another.
  return stages
    .flatMap((stage) => hanging('  ', stageRow(stage).filter(Boolean).join(' · '), width))
    .join('\n');
}

const unbroken = (text: string): string => text.replaceAll(' ', nbsp);

function latencyLines({ latency }: ProfileResult, width: number): string[] {
  const whole = [
    formatFigureWithSpread(latency.e2e_ms),
    `output ${formatFigure(latency.output_tokens_per_s)}`,
  ];
  const tokens = [
    `TTFT ${formatFigureWithInterval(latency.ttft_ms)}`,
    `TPOT ${formatFigureWithInterval(latency.tpot_ms)}`,
  ];
  return [
    ...hanging(label('end to end'), whole.map(unbroken).join(' · '), width),
    ...hanging(label('tokens'), tokens.map(unbroken).join(' · '), width),
  ];
}

function memoryWords(memory: MemoryResult): string {
  const parts = memoryParts(memory).map(
    ({ component, bytes }) =>
      `${componentNames[component].replaceAll(' ', nbsp)}${nbsp}${formatBytes(bytes)}`,
  );
  return `${formatFigure(memory.peak_bytes)}${parts.length > 0 ? ` (${parts.join(', ')})` : ''}`;
}

function barLines(stage: StageResult, width: number): string[] {
  const bars = shownBars(stage);
  const measured = stage.duration_ms.value;
  const whole = measured === null ? [] : [{ label: 'measured', ms: measured }];
  const all = [...bars, ...whole];
  const times = formatMsColumn(
    all.map(({ ms }) => ms),
    3,
  );
  const full = Math.max(...bars.map(({ ms }) => ms));
  const rows = all.map(({ label, ms }, index) => [
    label,
    `${times[index]}${nbsp}ms`,
    measured === null ? '' : barShareText(ms, measured),
    index < bars.length ? textBar(ms, full, barCells) : '',
  ]);
  const columns = [
    { head: '', flexible: true },
    { head: '', align: 'right' as const },
    { head: '', align: 'right' as const },
    { head: '' },
  ].slice(0, width < 72 ? 3 : 4);
  const title = `Where ${stage.kind === 'decode' ? 'a decode step' : stage.kind} goes, from what the hardware allows to what was measured`;
  const table = textTable(
    columns,
    rows.map((row) => row.slice(0, columns.length)),
    { width, indent: 4 },
  );
  return ['', ...hanging('  ', title, width).map((line) => colour.bold(line)), table];
}

const severityWords: Record<Issue['severity'], string> = {
  error: colour.red('error:'),
  warning: colour.yellow('warning:'),
  info: 'note:',
};

function noticeLines(document: Document<ProfileResult>, width: number): string[] {
  // "note" lines belong to the report; the summary keeps to what changes a conclusion.
  return notices(document)
    .filter(({ severity }) => severity !== 'info')
    .flatMap((issue) => {
      const times = timesOf(issue);
      const text = `${inert(issue.text)}${times && ` (${times})`}`;
      return hanging(`  ${severityWords[issue.severity]} `, text, width);
    });
}

function missingLines({ data }: Document<ProfileResult>, width: number): string[] {
  const reasons = missingReasons([
    ['end to end', data.latency.e2e_ms],
    ['TTFT', data.latency.ttft_ms],
    ['TPOT', data.latency.tpot_ms],
    ...data.stages
      .filter((stage) => stage.kind !== 'sampling')
      .flatMap((stage): [string, typeof stage.mfu][] => [
        [`${stage.kind} time`, stage.duration_ms],
        [`${stage.kind} MFU`, stage.mfu],
        [`${stage.kind} MBU`, stage.mbu],
        [`${stage.kind} by operators`, stage.profiled_ms],
      ]),
  ]);
  return reasons.flatMap((reason) => hanging('  missing: ', inert(reason), width));
}

/** The summary that `profile` ends with: at most 80 columns, readable without colour. */
export function profileSummary(
  document: Document<ProfileResult>,
  { reportPath, width: columns, explanation }: SummaryOptions,
): string {
  const { data } = document;
  const width = readingWidth(columns);
  const title = [
    `inferscope${nbsp}${document.tool_version}`,
    'profile',
    inert(identityWords(data.workload)),
  ].join(' · ');
  const figures = [
    '',
    stageTable(data.stages, width),
    ...latencyLines(data, width),
    ...(data.memory ? hanging(label('peak memory'), memoryWords(data.memory), width) : []),
    ...missingLines(document, width),
  ];
  const decode = stageNamed(data, 'decode');
  const shown = decode && decode.bars.length > 0 ? decode : stageNamed(data, 'prefill');
  const waterfall = shown && shown.bars.length > 0 ? barLines(shown, width) : [];
  // Sentences, waterfall, findings, then the evidence; without an explanation the figures come first.
  const lines = explanation
    ? [
        ...wrap(title, width),
        ...explanationLines([explanation.sentences]),
        ...waterfall,
        ...explanationLines([explanation.findings]),
        ...figures,
      ]
    : [...wrap(title, width), ...figures, ...waterfall];
  const said = noticeLines(document, width);
  if (said.length > 0) lines.push('', ...said);
  // The path is kept whole so that it can be copied, whatever its length.
  lines.push('', `  Session ${data.session.id} kept${reportPath === null ? '' : ' · report:'}`);
  if (reportPath !== null) {
    const last = `${lines.pop() ?? ''} ${reportPath}`;
    lines.push(
      ...(last.length <= width ? [last] : [`  Session ${data.session.id} kept · report:`, `  ${reportPath}`]),
    );
  }
  return withPlainSpaces(lines.join('\n'));
}
