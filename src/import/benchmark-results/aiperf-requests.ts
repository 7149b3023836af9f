import { tokenCountIssues } from './aiperf-summary.js';
import {
  type JsonObject,
  metricList,
  numberOf,
  numbersOf,
  objectOf,
  textOf,
  msPerUnit,
} from './metric-list.js';
import { recompute, type RequestSample, requestRows } from './recompute.js';
import {
  allFailed,
  requestsFailed,
  notStreamed,
  type ResultFile,
  unknownLoad,
  warning,
} from './result-file.js';
import { parseLenient, readTextLines, unreadable } from './result-text.js';
import { resultsImporter } from './results-importer.js';
import { plural } from '../../vocabulary/format.js';

/** AIPerf's `profile_export.jsonl`: one request per line, `{metadata, metrics{tag: {value, unit}}, error}`. */
export const aiperfRequestsImporter = resultsImporter({
  name: 'aiperf-requests',
  sniff: (firstBytes) =>
    /^\s*\{/.test(firstBytes) &&
    firstBytes.includes('"request_start_ns"') &&
    firstBytes.includes('"metadata"'),
  read: parseAiperfRequests,
});

interface AiperfRequests {
  /** Wall clock of the first request, ns since the epoch. */
  zero: bigint;
  requests: RequestSample[];
  /** Output tokens of the measured requests as AIPerf counted them, and as the server reported them. */
  tokens: { counted: number; reported: number };
  /** Number of the last line if it is truncated. */
  truncatedLine: number | null;
}

/** @throws E_TRACE_FILE if a line other than a truncated last one is not a request, or there is no request */
async function readRequests(path: string, signal?: AbortSignal): Promise<AiperfRequests> {
  const starts: bigint[] = [];
  const requests: RequestSample[] = [];
  const tokens = { counted: 0, reported: 0 };
  let damaged: { line: number; cause: unknown } | null = null;
  for await (const { text, line } of readTextLines(path, signal)) {
    if (damaged) throw unreadable(path, `Line ${damaged.line} is not JSON.`, damaged.cause);
    let parsed: JsonObject | null = null;
    try {
      parsed = objectOf(parseLenient(text));
    } catch (cause) {
      damaged = { line, cause };
      continue;
    }
    // Nanoseconds since 1970 do not fit a double: they are parsed from the text.
    const start = /"request_start_ns"\s*:\s*(\d+)/.exec(text)?.[1];
    if (!parsed || start === undefined) throw unreadable(path, `Line ${line} has no request_start_ns.`);
    starts.push(BigInt(start));
    const request = sampleOf(parsed);
    requests.push(request);
    const reported = numberOf(objectOf(objectOf(parsed['metrics'])?.['usage_completion_tokens'])?.['value']);
    if (reported !== null && request.output_tokens !== null && !request.warmup) {
      tokens.counted += request.output_tokens;
      tokens.reported += reported;
    }
  }
  if (requests.length === 0) throw unreadable(path, 'It contains no request.');
  const zero = starts.reduce((low, start) => (start < low ? start : low));
  for (const [i, request] of requests.entries()) request.sent_ms = Number(starts[i]! - zero) / 1e6;
  return { zero, requests, tokens, truncatedLine: damaged?.line ?? null };
}

async function parseAiperfRequests(path: string, signal?: AbortSignal): Promise<ResultFile> {
  const { zero, requests, tokens, truncatedLine } = await readRequests(path, signal);
  const list = metricList('aiperf');
  const measured = requests.filter(({ warmup }) => !warmup);
  const succeeded = measured.filter(({ failure }) => failure === null);
  const source = `recomputed from ${plural(measured.length, 'request')}`;
  list.addCommon('completed', 'value', succeeded.length, { source });
  list.addCommon('failed', 'value', measured.length - succeeded.length, { source });
  const withoutGaps = succeeded.filter(
    ({ gaps_ms, output_tokens }) => gaps_ms === null && (output_tokens ?? 0) > 1,
  );
  recompute(requests, list);
  const issues = tokenCountIssues(tokens.counted, tokens.reported);
  const failed = measured.length - succeeded.length;
  if (failed > 0) issues.push(requestsFailed('AIPerf', failed));
  if (succeeded.length === 0) issues.push(allFailed('AIPerf', unknownLoad));
  const streamed = succeeded.some(({ ttft_ms }) => ttft_ms !== null);
  if (succeeded.length > 0 && !streamed) issues.push(notStreamed('AIPerf'));
  if (streamed && withoutGaps.length > 0) {
    const text = `In ${withoutGaps.length} of ${succeeded.length} requests a chunk contained more or less than one token: ITL is unknown, TPOT is computed from token counts.`;
    issues.push(warning('chunk_is_not_token', text, withoutGaps.length));
  }
  if (truncatedLine !== null)
    issues.push(
      warning('last_line_cut_off', `Line ${truncatedLine}, the last one, is cut off and was skipped.`),
    );
  return {
    tool: { name: 'aiperf', version: null },
    realtime_zero_ns: zero,
    clock: { name: 'CLOCK_REALTIME, ns', resolution_ns: 1, error_bound_ns: 1000 },
    hardware: {},
    software: {},
    points: [{ label: unknownLoad, metrics: list.metrics, requests: requestRows(requests), iterations: [] }],
    issues,
  };
}

function sampleOf(object: JsonObject): RequestSample {
  const metadata = objectOf(object['metadata']) ?? {};
  const metrics = objectOf(object['metrics']) ?? {};
  const value = (name: string) => objectOf(metrics[name])?.['value'];
  const ms = (name: string) => {
    const number = numberOf(value(name));
    const factor = msPerUnit(textOf(objectOf(metrics[name])?.['unit']) ?? '');
    return number === null || factor === null ? null : number * factor;
  };
  const error = objectOf(object['error']);
  const cancelled = metadata['was_cancelled'] === true;
  const output = numberOf(value('output_sequence_length')) ?? numberOf(value('output_token_count'));
  const factor = msPerUnit(textOf(objectOf(metrics['inter_chunk_latency'])?.['unit']) ?? '') ?? 1;
  const gaps = numbersOf(value('inter_chunk_latency')).map((gap) => gap * factor);
  const failed = error !== null || cancelled;
  return {
    request_id: textOf(metadata['x_request_id']),
    sent_ms: null,
    ttft_ms: failed ? null : ms('time_to_first_token'),
    e2e_ms: failed ? null : ms('request_latency'),
    gaps_ms: !failed && output !== null && gaps.length === output - 1 ? gaps : null,
    chunks: gaps.length > 0 ? gaps.length + 1 : null,
    input_tokens: numberOf(value('input_sequence_length')) ?? numberOf(value('error_isl')),
    output_tokens: output,
    failure: failed
      ? {
          status: cancelled ? 'cancelled' : 'failed',
          error: errorText(error),
        }
      : null,
    warmup: metadata['benchmark_phase'] === 'warmup',
  };
}

function errorText(error: JsonObject | null): string | null {
  const text = textOf(error?.['message']) ?? textOf(error?.['type']);
  const code = numberOf(error?.['code']);
  return code === null ? text : `HTTP ${code}${text === null ? '' : `: ${text}`}`;
}
