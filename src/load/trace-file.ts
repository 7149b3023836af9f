import { InferscopeError } from '../model/errors.js';

/** One request of a recorded trace. */
export interface TracedRequest {
  at_s: number;
  input_tokens: number | null;
  output_tokens: number | null;
}

/**
 * Reads the two trace formats in use: Mooncake's JSON lines ({"timestamp": 27482, "input_length": 6955,
 * "output_length": 52}, ms) and Azure's CSV (TIMESTAMP,ContextTokens,GeneratedTokens with "2023-11-16
 * 18:15:46.6805900"). Sorted by time.
 * @throws E_FORMAT_UNKNOWN with the first line in neither format
 */
export function parseTraceFile(text: string, name: string): TracedRequest[] {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
  const traced = /^\s*\{/.test(lines[0] ?? '') ? mooncake(lines, name) : azure(lines, name);
  if (traced.length === 0) throw unknownTrace(name, 1, 'The file has no request');
  return traced.sort((x, y) => x.at_s - y.at_s);
}

function mooncake(lines: string[], name: string): TracedRequest[] {
  return lines.map((line, index) => {
    let row: { timestamp?: unknown; input_length?: unknown; output_length?: unknown };
    try {
      row = JSON.parse(line) as typeof row;
    } catch {
      throw unknownTrace(name, index + 1, 'The line is not JSON');
    }
    const timeS = Number(row.timestamp);
    if (row.timestamp === undefined || !Number.isFinite(timeS))
      throw unknownTrace(name, index + 1, 'The line has no timestamp (ms)');
    return {
      at_s: timeS / 1000,
      input_tokens: tokens(row.input_length),
      output_tokens: tokens(row.output_length),
    };
  });
}

function azure(lines: string[], name: string): TracedRequest[] {
  const heads = (lines[0] ?? '').split(',').map((head) => head.trim().toLowerCase());
  const column = (...names: string[]) => heads.findIndex((head) => names.includes(head));
  const [time, input, output] = [
    column('timestamp', 'arrival_s', 'time'),
    column('contexttokens', 'input_tokens', 'input_length'),
    column('generatedtokens', 'output_tokens', 'output_length'),
  ];
  if (time < 0) throw unknownTrace(name, 1, 'The header has no column TIMESTAMP');
  return lines.slice(1).map((line, index) => {
    const cells = line.split(',');
    const timeS = seconds(cells[time] ?? '');
    if (timeS === null) throw unknownTrace(name, index + 2, `"${cells[time]?.slice(0, 60)}" is not a time`);
    return { at_s: timeS, input_tokens: tokens(cells[input]), output_tokens: tokens(cells[output]) };
  });
}

/** A number of seconds, or a date with up to seven digits in its fraction (.NET ticks). */
function seconds(cell: string): number | null {
  if (cell.trim() !== '' && Number.isFinite(Number(cell))) return Number(cell);
  const [, wholeSeconds, fraction] = /^(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(\.\d+)?/.exec(cell.trim()) ?? [];
  if (wholeSeconds === undefined) return null;
  const timeMs = Date.parse(`${wholeSeconds.replace(' ', 'T')}Z`);
  return Number.isNaN(timeMs) ? null : timeMs / 1000 + Number(`0${fraction ?? ''}`);
}

function tokens(value: unknown): number | null {
  const count = value === undefined || value === '' ? Number.NaN : Number(value);
  return Number.isInteger(count) && count > 0 ? count : null;
}

function unknownTrace(name: string, line: number, why: string): InferscopeError {
  return new InferscopeError('E_FORMAT_UNKNOWN', {
    what: `line ${line} of ${name} is not an arrival of a trace`,
    why: `${why}.`,
    fix: 'Give JSON lines with timestamp (ms), input_length, output_length, or a CSV with TIMESTAMP,ContextTokens,GeneratedTokens.',
  });
}
