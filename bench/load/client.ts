import { request } from 'undici';
import { clientVerdict } from '../../src/load/client-verdict.js';
import type { Exchange } from '../../src/load/exchange.js';
import type { PlannedRequest } from '../../src/load/load-shape.js';
import type { LoadTarget } from '../../src/load/target.js';
import { runLoad } from '../../src/load/threads.js';
import { tokenTimes } from '../../src/load/token-times.js';

// One load against bench/load/server.mjs in a separate process: node client.js URL STREAMS TOKENS_PER_S SECONDS THREADS WORKER. Every user
// sends three requests of SECONDS each; the first is a warm-up that is not counted, as in bench serve. Prints one JSON line.
const [url = '', streamsText, rateText, secondsText, threadsText, workerEntry = ''] = process.argv.slice(2);
const [streams, rate, seconds, threads] = [streamsText, rateText, secondsText, threadsText].map(Number) as [
  number,
  number,
  number,
  number,
];
const firstMs = 200;
const target: LoadTarget = {
  baseUrl: `${url}/v1`,
  api: 'chat',
  model: 'programmed',
  apiKey: null,
  headers: {},
  temperature: 0,
  ignoreEos: true,
  extraBody: { first_ms: firstMs, gap_ms: 1000 / rate },
  timeoutMs: 60_000,
};
const requests = Array.from({ length: 3 * streams }, (_, index): PlannedRequest => ({
  index,
  prompt: `prompt ${index}`,
  input_tokens: null,
  output_tokens: Math.round(rate * seconds),
  warmup: index < streams,
  due_ns: null,
}));

interface LogEntry {
  prompt: string;
  read_ns: number;
  writes_ns: number[];
}

async function serverLog(): Promise<Map<string, LogEntry>> {
  const entries = (await (await request(`${url}/log`)).body.json()) as LogEntry[];
  return new Map(entries.map((entry) => [entry.prompt, entry]));
}

function percentiles(values: number[]) {
  const sorted = Float64Array.from(values).sort();
  const quantile = (share: number) =>
    sorted.length === 0 ? null : Number(sorted[Math.floor((sorted.length - 1) * share)]!.toFixed(3));
  return { p50: quantile(0.5), p99: quantile(0.99), p999: quantile(0.999), max: quantile(1) };
}

/** Latencies by the server's log, as a client without any delay would measure them. */
function serverFigures(entries: readonly LogEntry[]) {
  const streamed = entries.filter(({ writes_ns: writes }) => writes.length > 1);
  return {
    ttft_ms: percentiles(streamed.map(({ read_ns: read, writes_ns: writes }) => (writes[0]! - read) / 1e6)),
    tpot_ms: percentiles(
      streamed.map(({ writes_ns: writes }) => (writes.at(-1)! - writes[0]!) / 1e6 / (writes.length - 1)),
    ),
  };
}

/** Chunks read per second: the median over the whole seconds after every user had started. */
function chunksPerSecond(exchanges: readonly Exchange[], beginNs: number): number | null {
  const from = beginNs + (rampSeconds + 1) * 1e9;
  const bins: number[] = [];
  for (const { chunk_ns: stamps } of exchanges)
    for (const ns of stamps) {
      const bin = Math.floor((ns - from) / 1e9);
      if (bin >= 0) bins[bin] = (bins[bin] ?? 0) + 1;
    }
  // In the last seconds some users are done.
  const loadedSeconds = bins.slice(0, Math.max(1, Math.floor(3 * (seconds + firstMs / 1000)) - 2));
  return percentiles(loadedSeconds.map((count) => count ?? 0)).p50;
}

const rampSeconds = 1;
await serverLog();
const control = { signal: new AbortController().signal };
const plan = {
  target,
  requests,
  concurrency: streams,
  loop: 'closed' as const,
  ramp_s: rampSeconds,
  discard_text: true,
};
const cpuBefore = process.cpuUsage();
const outcome = await runLoad({ ...plan, seconds: Number.POSITIVE_INFINITY }, threads, control, workerEntry);
const cpu = process.cpuUsage(cpuBefore);
const log = await serverLog();

const stampErrors: number[] = [];
const ttftErrors: number[] = [];
const tpotErrors: number[] = [];
const serverLate: number[] = [];
const ttfts: number[] = [];
const tpots: number[] = [];
for (const exchange of outcome.exchanges) {
  const truth = log.get(`prompt ${exchange.index}`);
  if (exchange.warmup || exchange.status !== 'ok' || truth?.writes_ns.length !== exchange.chunk_ns.length)
    continue;
  const { ttft_ns: ttft, tpot_ns: tpot } = tokenTimes(exchange, null);
  const writes = truth.writes_ns;
  exchange.chunk_ns.forEach((stamp, index) => {
    stampErrors.push((stamp - writes[index]!) / 1e6);
    serverLate.push((writes[index]! - truth.read_ns) / 1e6 - firstMs - (index * 1000) / rate);
  });
  ttftErrors.push(Math.abs(ttft! - (writes[0]! - exchange.sent_ns!)) / 1e6);
  tpotErrors.push(Math.abs(tpot! - (writes.at(-1)! - writes[0]!) / (writes.length - 1)) / 1e6);
  ttfts.push(ttft! / 1e6);
  tpots.push(tpot! / 1e6);
}
const tokens = outcome.exchanges.reduce((sum, { chunk_ns: stamps }) => sum + stamps.length, 0);
const lags = outcome.exchanges
  .filter(({ warmup }) => !warmup)
  .map((exchange) => (exchange.dispatched_ns - exchange.scheduled_ns) / 1e6);
const verdict = clientVerdict(
  outcome.threads,
  lags.sort((x, y) => x - y),
  percentiles(ttfts).p50,
);
console.log(
  JSON.stringify({
    streams,
    requested_tokens_per_s: streams * rate,
    tokens_per_s: chunksPerSecond(outcome.exchanges, outcome.begin_ns),
    ok: ttftErrors.length,
    failed: outcome.exchanges.filter(({ status }) => status !== 'ok').length,
    /** Reported figures and sent requests, for the comparison with other clients. */
    ttft_ms: percentiles(ttfts),
    tpot_ms: percentiles(tpots),
    server: serverFigures([...log.values()].filter(({ prompt }) => Number(prompt.split(' ')[1]) >= streams)),
    ttft_error_ms: percentiles(ttftErrors),
    tpot_error_ms: percentiles(tpotErrors),
    stamp_error_ms: percentiles(stampErrors),
    server_late_ms: percentiles(serverLate),
    client_cpu_s: (cpu.user + cpu.system) / 1e6,
    client_cpu_us_per_token: Number(((cpu.user + cpu.system) / Math.max(1, tokens)).toFixed(2)),
    client_cores: Number(verdict.process_cores.toFixed(2)),
    event_loop_utilization: Number(verdict.event_loop_utilization.toFixed(2)),
    event_loop_delay_p99_ms: Number(verdict.event_loop_delay_p99_ms.toFixed(2)),
    send_lag_p99_ms: Number((verdict.send_lag_p99_ms ?? 0).toFixed(2)),
    client_bound: verdict.bound,
    reasons: verdict.reasons,
  }),
);
