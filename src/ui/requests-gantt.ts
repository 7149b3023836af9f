import type { TimedRequest } from '../facts/serving/requests-over-time.js';
import type { KeyEntry, TimelineChart } from '../views/chart.js';
import { classColors, type Color } from '../vocabulary/colors.js';
import { formatMs, plural } from '../vocabulary/format.js';

/** Requests per chart of a page, in the order in which they were sent. */
export const ganttRequests = 200;

const parts = {
  due: { label: 'due, not sent', color: 'idle' },
  waiting: { label: 'until the first token', color: classColors.attention },
  answer: { label: 'first to last token', color: classColors.gemm },
  answered: { label: 'answered, first token not recorded', color: 'serial' },
  failed: { label: 'failed', color: classColors.sampling },
} as const satisfies Record<string, { label: string; color: Color }>;
type PartName = keyof typeof parts;

interface Timed extends TimedRequest {
  sent_s: number;
  e2e_ms: number;
}

const isTimed = (request: TimedRequest): request is Timed =>
  request.sent_s !== null && request.e2e_ms !== null;
const endOf = ({ sent_s: sent, e2e_ms: ms }: Timed): number => sent + ms / 1e3;
const startOf = ({ sent_s: sent, due_s: due }: Timed): number => Math.min(sent, due ?? sent);

export interface Gantt {
  chart: TimelineChart;
  /** Requests of the requested range, in the order in which they were sent, with those that have no end. */
  drawn: readonly TimedRequest[];
  /** Number of requests sent earlier and still in flight. */
  before: number;
  /** Number of requests without an end. */
  endless: number;
  /** Start of the first request in the chart, s since the first request was sent. */
  start_s: number;
}

/**
 * When each request was due, sent, and had its first and last token. A row has one request at a time, so the number of rows is the
 * largest number of requests that were due or in flight at the same time. Null if none of them has a send time and an end.
 * @param from index of the first request, in the order in which they were sent
 * @param max number of requests from there on
 */
export function requestGantt(
  requests: readonly TimedRequest[],
  from: number,
  max = ganttRequests,
): Gantt | null {
  const inRange = requests.slice(from, from + max);
  const timed = inRange.filter(isTimed);
  if (timed.length === 0) return null;
  const start_s = timed.reduce((earliest, request) => Math.min(earliest, startOf(request)), Infinity);
  const before = requests
    .slice(0, from)
    .filter(isTimed)
    .filter((request) => endOf(request) > start_s);
  const drawn = [...before, ...timed];
  const end = drawn.reduce((latest, request) => Math.max(latest, endOf(request)), 0);
  const spans: [number, number, number, number][] = [];
  const kinds: TimelineChart['kinds'][number][] = [];
  const freeSince: number[] = [];
  for (const request of drawn) {
    const start = startOf(request);
    const next = freeSince.findIndex((since) => since <= start);
    const row = next === -1 ? freeSince.length : next;
    freeSince[row] = endOf(request);
    for (const { part, from: fromS, to } of partsOf(request)) {
      if (to <= fromS) continue;
      spans.push([row, (fromS - start_s) * 1e9, (to - fromS) * 1e9, kinds.length]);
      kinds.push({
        label: part === 'failed' ? (request.status ?? '') : '',
        color: parts[part].color,
        title: `request ${request.id ?? ''}: ${parts[part].label}`,
        notes: notesOf(request),
      });
    }
  }
  const usedColors = new Set(kinds.map(({ color }) => color));
  return {
    chart: {
      form: 'timeline',
      dur_ns: Math.max(1, (end - start_s) * 1e9),
      lanes: freeSince.map((_, row) => String(row + 1)),
      kinds,
      spans,
      key: Object.values(parts)
        .filter(({ color }) => usedColors.has(color))
        .map(({ label, color }): KeyEntry => ({ name: label, color })),
    },
    drawn: inRange,
    before: before.length,
    endless: inRange.length - timed.length,
    start_s,
  };
}

function partsOf(request: Timed): { part: PartName; from: number; to: number }[] {
  const { sent_s: sent, ttft_ms: ttft, status } = request;
  const end = endOf(request);
  const due = { part: 'due' as const, from: startOf(request), to: sent };
  if (status !== null && status !== 'ok') return [due, { part: 'failed', from: sent, to: end }];
  if (ttft === null) return [due, { part: 'answered', from: sent, to: end }];
  const first = sent + ttft / 1e3;
  return [due, { part: 'waiting', from: sent, to: first }, { part: 'answer', from: first, to: end }];
}

const notesOf = ({
  ttft_ms: ttft,
  e2e_ms: e2e,
  input_tokens: input,
  output_tokens: output,
  warmup,
}: Timed) => [
  ...(ttft === null ? [] : [`TTFT ${formatMs(ttft)}`]),
  `latency ${formatMs(e2e)}`,
  ...(input === null ? [] : [`${plural(input, 'token')} in`]),
  ...(output === null ? [] : [`${plural(output, 'token')} out`]),
  ...(warmup ? ['warm-up'] : []),
];
