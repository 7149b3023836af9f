import { availableParallelism } from 'node:os';
import process from 'node:process';
import { openGpus } from '../capture/telemetry-gpus.js';
import { startDeviceSampler } from '../capture/run/device-sampler.js';
import { startHostSampler } from '../capture/telemetry.js';
import { clientVerdict } from '../load/client-verdict.js';
import { loadLevel } from '../load/load-shape.js';
import { planRequests } from '../load/plan-requests.js';
import type { PromptTokenizer } from '../load/prompts.js';
import { requestRow } from '../load/request-row.js';
import type { PointControl } from '../load/run-point.js';
import { startServerSampler } from '../load/server-sampler.js';
import type { SweepPoint } from '../load/sweep.js';
import type { LoadTarget } from '../load/target.js';
import { runLoad, type LoadOutcome } from '../load/threads.js';
import type { Issue } from '../model/document.js';
import type { LoadPlan, Slo } from '../model/documents/serving.js';
import type { Row } from '../model/tables.js';
import type { SessionFiles } from '../session/session-files.js';
import type { PlannedLoad } from './bench-serve-loads.js';

export interface PointContext {
  target: LoadTarget;
  inputLen: number;
  outputLen: number;
  seed: number;
  tokenizer: PromptTokenizer | undefined;
  slo: Slo | null;
  /** Asked for; null begins with one and takes more when one is not enough. */
  threads: number | null;
  metricsUrl: string | null;
  originNs: number;
}

export interface PointResult {
  facts: LoadPlan['points'][number];
  seen: SweepPoint;
  issues: Issue[];
}

const host = 'localhost';

/** Runs one load and puts its requests and telemetry into the session. */
export async function runServingPoint(
  session: SessionFiles,
  id: string,
  load: PlannedLoad,
  context: PointContext,
  control: PointControl,
): Promise<PointResult> {
  const { target, originNs, tokenizer, inputLen, outputLen, seed } = context;
  const planned = planRequests({
    ...load,
    inputLen,
    outputLen,
    seed,
    part: id,
    ...(tokenizer ? { tokenizer } : {}),
  });
  const keys = { execution_id: id, capture_id: id, host };
  const { gpus } = await openGpus();
  const samplers = {
    host: startHostSampler({ pid: process.pid, keys: { ...keys, rank: 0 } }),
    device: gpus === null ? null : startDeviceSampler(gpus, keys),
    server: context.metricsUrl === null ? null : startServerSampler(context.metricsUrl),
  };
  let outcome: LoadOutcome;
  const threads = context.threads ?? 1;
  try {
    outcome = await runLoad(
      {
        target,
        requests: planned,
        concurrency: load.concurrency,
        loop: load.shape.kind === 'closed' ? 'closed' : 'open',
        ramp_s: load.shape.kind === 'closed' ? load.shape.ramp_s : 0,
        seconds: load.seconds,
        discard_text: tokenizer === undefined,
      },
      threads,
      control,
    );
  } finally {
    const recorded = samplers.host.stop();
    const devices = samplers.device?.stop() ?? { telemetry: [], memory: [] };
    const readings = (await samplers.server?.stop()) ?? [];
    for (const row of [...recorded.telemetry, ...devices.telemetry])
      session.sink.append('telemetry', { ...row, t_ns: row.t_ns! - originNs });
    for (const row of [...recorded.memory, ...devices.memory])
      session.sink.append('memory', { ...row, t_ns: row.t_ns! - originNs });
    for (const { t_ns, reading } of readings)
      for (const [metric, value] of Object.entries(reading))
        session.sink.append('telemetry', {
          ...keys,
          rank: 0,
          t_ns: t_ns - originNs,
          scope: 'server',
          metric,
          value,
        });
    gpus?.close();
  }
  const prompts = new Map(planned.map((one) => [one.index, one.input_tokens]));
  const rows = outcome.exchanges.map((exchange) =>
    requestRow(exchange, keys, originNs, {
      prompt: tokenizer ? (index) => prompts.get(index) ?? null : null,
      text: tokenizer ? (text) => tokenizer.encode(text).length : null,
    }),
  );
  for (const row of rows) session.sink.append('requests', row);
  return {
    facts: {
      execution_id: id,
      load: {
        kind: load.shape.kind,
        concurrency: load.concurrency,
        rate_per_s: load.shape.kind === 'closed' ? null : loadLevel(load.shape),
        requests: planned.length,
        warmup_requests: planned.filter(({ warmup }) => warmup).length,
        ramp_s: load.shape.kind === 'closed' ? load.shape.ramp_s : 0,
        seconds: Number.isFinite(load.seconds) ? load.seconds : null,
      },
      begin_ns: outcome.begin_ns - originNs,
      end_ns: outcome.end_ns - originNs,
      client: clientVerdict(outcome.threads, sendLags(outcome, load), median(rows, 'ttft_ns')),
    },
    seen: sweepPoint(rows, load, outcome, context.slo, control.signal.aborted),
    issues: [],
  };
}

/** With a bound on an open load, the wait for a slot is the load's, not the client's: then nothing is known. */
function sendLags({ exchanges }: LoadOutcome, load: PlannedLoad): number[] {
  if (load.shape.kind !== 'closed' && load.concurrency !== null) return [];
  return exchanges
    .filter(({ warmup }) => !warmup)
    .map((one) => (one.dispatched_ns - one.scheduled_ns) / 1e6)
    .sort((x, y) => x - y);
}

function median(rows: Row<'requests'>[], column: 'ttft_ns'): number | null {
  const values = rows.map((row) => row[column] ?? null).filter((value) => value !== null);
  values.sort((x, y) => x - y);
  const middle = values[Math.floor(values.length / 2)];
  return middle === undefined ? null : middle / 1e6;
}

/** Enough to choose the next load; the figures that are shown come from the session's tables. */
function sweepPoint(
  rows: Row<'requests'>[],
  load: PlannedLoad,
  outcome: LoadOutcome,
  slo: Slo | null,
  stopped: boolean,
): SweepPoint {
  const counted = rows.filter((row) => row.warmup !== true && row.status !== 'cancelled');
  const ok = counted.filter((row) => row.status === 'ok');
  const begin = Math.min(...counted.map((row) => row.sent_ns ?? row.scheduled_ns ?? 0));
  const end = Math.max(...counted.map((row) => row.end_ns ?? 0));
  const tokens = ok.reduce((sum, row) => sum + (row.output_tokens ?? row.chunks ?? 0), 0);
  const within = (ns: number | null | undefined, ms: number | null) =>
    ms === null || (ns !== null && ns !== undefined && ns / 1e6 <= ms);
  // As the analysis has it (keepsSlo): an open loop counts from when a request was due.
  const since = (row: Row<'requests'>, at: number | null | undefined) =>
    at! - (load.shape.kind === 'closed' ? row.sent_ns! : row.scheduled_ns!);
  const good = ok.filter(
    (row) =>
      slo !== null &&
      within(since(row, row.first_token_ns), slo.ttft_ms) &&
      (row.output_tokens === 1 || within(row.tpot_ns, slo.tpot_ms)) &&
      within(since(row, row.end_ns), slo.e2e_ms),
  );
  return {
    level: loadLevel(load.shape),
    output_rate: end > begin ? tokens / ((end - begin) / 1e9) : 0,
    failed_share: counted.length === 0 ? 1 : 1 - ok.length / counted.length,
    meets_slo: slo === null ? null : counted.length > 0 && good.length / counted.length >= slo.share,
    stopped: stopped || outcome.exchanges.length === 0,
  };
}

/** More threads than that would take the cores from each other, and from a server on this machine. */
export function mostThreads(): number {
  return Math.max(1, availableParallelism() - 1);
}
