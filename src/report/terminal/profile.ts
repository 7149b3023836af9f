import pc from 'picocolors';
import type { Document, Issue } from '../../model/document.js';
import type { MemoryResult, ProfileResult, StageResult } from '../../model/documents/profile.js';
import {
  formatBytes,
  formatFigure,
  formatFigureWithInterval,
  formatFigureWithSpread,
  formatMsColumn,
  formatUtilization,
  nbsp,
} from '../format.js';
import { barMeaning, componentNames } from '../names.js';
import {
  boundWords,
  engineWords,
  missingReasons,
  modelWords,
  notices,
  shapeWords,
  stageNamed,
  stageUnit,
  suggestionSentence,
} from '../words.js';
import { textTable } from './table.js';
import { hanging, inert, textBar, withPlainSpaces, wrap } from './text.js';

export interface SummaryOptions {
  /** Where the HTML report was written; null when none was. */
  reportPath: string | null;
  /** Columns of the terminal; at most 80 are used. */
  width: number;
}

const barCells = 11;

const label = (text: string): string => `  ${pc.bold(text.padEnd(13))}`;

function stageRow(stage: StageResult): string[] {
  const time = `${formatFigure(stage.duration_ms)}${stageUnit(stage)}`;
  if (stage.kind === 'sampling') return [stage.kind, time, '', '', '', ''];
  return [
    pc.bold(stage.kind),
    time,
    formatFigure(stage.tokens_per_s),
    `MFU ${formatUtilization(stage.mfu)}`,
    `MBU ${formatUtilization(stage.mbu)}`,
    boundWords(stage),
  ];
}

function stageTable(stages: StageResult[], width: number): string {
  const columns = ['left', 'right', 'right', 'left', 'left', 'left'].map((align) => ({
    head: '',
    align: align as 'left' | 'right',
  }));
  const table = textTable(columns, stages.map(stageRow), { width });
  if (table.split('\n').every((line) => line.length <= width)) return table;
  // An accounting fault in words takes more than a column: one part a line then.
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
  const parts = memory.breakdown.map(
    ({ component, bytes }) =>
      `${componentNames[component].replaceAll(' ', nbsp)}${nbsp}${formatBytes(bytes)}`,
  );
  return `${formatFigure(memory.peak_bytes)}${parts.length > 0 ? ` (${parts.join(', ')})` : ''}`;
}

function barLines(stage: StageResult, width: number): string[] {
  const full = Math.max(...stage.bars.map((bar) => bar.ms));
  const measured = stage.duration_ms.value;
  const times = formatMsColumn([
    ...stage.bars.map((bar) => bar.ms),
    ...(measured === null ? [] : [measured]),
  ]);
  const rows = stage.bars
    .map((bar, index) => [
      bar.id,
      `${times[index]}${nbsp}ms`,
      textBar(bar.ms, full, barCells),
      barMeaning(bar.id),
    ])
    // A bar that prints as zero says nothing, but that nothing is left unexplained is worth a line.
    .filter(([id, time]) => id === 'unattributed' || /[1-9]/.test(time ?? ''));
  if (measured !== null) rows.push(['measured', `${times.at(-1)}${nbsp}ms`, '', '']);
  const columns = [
    { head: '' },
    { head: '', align: 'right' as const },
    { head: '' },
    { head: '', flexible: true },
  ].slice(0, width < 72 ? 2 : 4);
  const title = `Where ${stage.kind === 'decode' ? 'a decode step' : stage.kind} goes`;
  const table = textTable(
    columns,
    rows.map((row) => row.slice(0, columns.length)),
    { width, indent: 4 },
  );
  return ['', `  ${pc.bold(title)}`, table];
}

const severityWords: Record<Issue['severity'], string> = {
  error: pc.red('error:'),
  warning: pc.yellow('warning:'),
  info: 'note:',
};

function noticeLines(document: Document<ProfileResult>, width: number): string[] {
  // "note" lines belong to the report; the summary keeps to what changes a conclusion.
  return notices(document)
    .filter(({ severity }) => severity !== 'info')
    .flatMap(({ severity, text }) => hanging(`  ${severityWords[severity]} `, inert(text), width));
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
      ]),
  ]);
  return reasons.flatMap((reason) => hanging('  missing: ', inert(reason), width));
}

/** The summary that `profile` ends with: at most 80 columns, readable without colour. */
export function profileSummary(
  document: Document<ProfileResult>,
  { reportPath, width: columns }: SummaryOptions,
): string {
  const { data } = document;
  const width = Math.min(80, columns);
  const title = [
    `inferscope${nbsp}${document.tool_version}`,
    'profile',
    inert(modelWords(data.workload)),
    inert(engineWords(data.workload)),
    shapeWords(data.workload),
  ].join(' · ');
  const lines = [...wrap(title, width), '', stageTable(data.stages, width)];
  lines.push(...latencyLines(data, width));
  if (data.memory) lines.push(...hanging(label('peak memory'), memoryWords(data.memory), width));
  lines.push(...missingLines(document, width));
  const decode = stageNamed(data, 'decode');
  const shown = decode && decode.bars.length > 0 ? decode : stageNamed(data, 'prefill');
  if (shown && shown.bars.length > 0) lines.push(...barLines(shown, width));
  if (data.suggestions.length > 0) {
    lines.push('', `  ${pc.bold('What would help')}`);
    for (const suggestion of data.suggestions) {
      lines.push(...hanging('    ', suggestionSentence(suggestion), width));
    }
  }
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
