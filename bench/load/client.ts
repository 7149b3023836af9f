import { request } from 'undici';
import { clientVerdict } from '../../src/load/client-verdict.js';
import type { PlannedRequest } from '../../src/load/load-shape.js';
import type { LoadTarget } from '../../src/load/target.js';
import { runLoad } from '../../src/load/threads.js';
import { tokenTimes } from '../../src/load/token-times.js';

// One load against bench/load/server.mjs, in a process of its own:
// node client.js URL STREAMS TOKENS_PER_S SECONDS THREADS WORKER. Prints one JSON line.
const [url = '', streamsText, rateText, secondsText, threadsText, workerEntry = ''] = process.argv.slice(2);
const [streams, rate, seconds, threads] = [streamsText, rateText, secondsText, threadsText].map(Number) as [
  number,
  number,
  number,
  number,
];
const firstMs = 200;
const outputTokens = Math.round(rate * seconds);
const target: LoadTarget = {
  baseUrl: `${url}/v1`,
  api: 'chat',
  model: 'programmed',
  apiKey: null,
  headers: {},
  temperature: 0,
  ignoreEos: true,
  extraBody: { first_ms: firstMs, gap_ms: 1000 / rate },
  timeout_ms: 120_000,
};
const requests = Array.from({ length: streams }, (_, index): PlannedRequest => ({
  index,
  prompt: `prompt ${index}`,
  input_tokens: null,
  output_tokens: outputTokens,
  warmup: false,
  due_ns: null,
}));

interface Logged {
  prompt: string;
  read_ns: number;
  writes_ns: number[];
}

const control = { signal: new AbortController().signal };
const plan = { target, requests, concurrency: streams, loop: 'closed' as const, ramp_s: 1 };
const began = process.cpuUsage();
const outcome = await runLoad({ ...plan, seconds: Number.POSITIVE_INFINITY }, threads, control, workerEntry);
const cpu = process.cpuUsage(began);
const log = new Map(
  ((await (await request(`${url}/log`)).body.json()) as Logged[]).map((entry) => [entry.prompt, entry]),
);

const ascending = (values: number[]) => values.sort((x, y) => x - y);
const at = (sorted: number[], share: number) =>
  sorted.length === 0 ? null : Number(sorted[Math.floor((sorted.length - 1) * share)]!.toFixed(3));
const spread = (values: number[]) => {
  const sorted = ascending(values);
  return { p50: at(sorted, 0.5), p99: at(sorted, 0.99), max: at(sorted, 1) };
};

const stampErrors: number[] = [];
const ttftErrors: number[] = [];
const tpotErrors: number[] = [];
const serverLate: number[] = [];
const ttfts: number[] = [];
let tokens = 0;
let first = Number.POSITIVE_INFINITY;
let last = 0;
for (const seen of outcome.exchanges) {
  const truth = log.get(`prompt ${seen.index}`);
  if (seen.status !== 'ok' || !truth || truth.writes_ns.length !== seen.chunk_ns.length) continue;
  const { ttft_ns: ttft, tpot_ns: tpot } = tokenTimes(seen, null);
  const writes = truth.writes_ns;
  seen.chunk_ns.forEach((stamp, index) => {
    stampErrors.push((stamp - writes[index]!) / 1e6);
    serverLate.push((writes[index]! - truth.read_ns) / 1e6 - firstMs - (index * 1000) / rate);
  });
  ttftErrors.push(Math.abs(ttft! - (writes[0]! - seen.sent_ns!)) / 1e6);
  tpotErrors.push(Math.abs(tpot! - (writes.at(-1)! - writes[0]!) / (writes.length - 1)) / 1e6);
  ttfts.push(ttft! / 1e6);
  tokens += writes.length;
  first = Math.min(first, writes[0]!);
  last = Math.max(last, writes.at(-1)!);
}
const lags = ascending(outcome.exchanges.map((seen) => (seen.dispatched_ns - seen.scheduled_ns) / 1e6));
const verdict = clientVerdict(outcome.threads, lags, at(ascending(ttfts), 0.5));
console.log(
  JSON.stringify({
    streams,
    asked_tokens_per_s: streams * rate,
    tokens_per_s: Math.round(tokens / ((last - first) / 1e9)),
    ok: ttftErrors.length,
    failed: outcome.exchanges.filter(({ status }) => status !== 'ok').length,
    ttft_error_ms: spread(ttftErrors),
    tpot_error_ms: spread(tpotErrors),
    stamp_error_ms: spread(stampErrors),
    server_late_ms: spread(serverLate),
    client_cpu_us_per_token: Number(((cpu.user + cpu.system) / Math.max(1, tokens)).toFixed(2)),
    client_cores: Number(verdict.process_cores.toFixed(2)),
    event_loop_utilization: Number(verdict.event_loop_utilization.toFixed(2)),
    event_loop_delay_p99_ms: Number(verdict.event_loop_delay_p99_ms.toFixed(2)),
    client_bound: verdict.bound,
    reasons: verdict.reasons,
  }),
);
