// Compares the load generator's measurements with the server's log, and finds the highest load that it sustains. See README.md.
// node bench/load/run.mjs [truth|limit|all] [seconds per request]
import process from 'node:process';
import { buildClient, describeMachine, loadAverage, runLoad, startServer } from './harness.mjs';

const [part = 'all', secondsText = '2'] = process.argv.slice(2);
const seconds = Number(secondsText);

function printResult(result, loadBefore) {
  const { ttft_error_ms: ttft, tpot_error_ms: tpot, stamp_error_ms: stamp, server_late_ms: late } = result;
  console.log(
    `${result.streams} streams, ${result.requested_tokens_per_s} tok/s requested, ${result.tokens_per_s} read; ${result.ok} requests, ${result.failed} failed; load average ${loadBefore}\n` +
      `  |error| ms: TTFT p50 ${ttft.p50} p99 ${ttft.p99}, TPOT p99 ${tpot.p99}; stamps p50 ${stamp.p50} p99 ${stamp.p99} p99.9 ${stamp.p999} max ${stamp.max}; server late p99 ${late.p99}\n` +
      `  client: ${result.client_cpu_us_per_token} µs CPU per token, ${result.client_cores} cores, loop busy ${result.event_loop_utilization}, late p99 ${result.event_loop_delay_p99_ms} ms, sent late p99 ${result.send_lag_p99_ms} ms; bound: ${result.client_bound ? result.reasons.join('; ') : 'no'}`,
  );
}

const { folder, close } = await buildClient();
const server = await startServer();
try {
  console.log(describeMachine());
  async function runRate(rate) {
    const loadBefore = loadAverage();
    const result = await runLoad(folder, server.url, { streams: 500, rate, seconds });
    printResult(result, loadBefore);
    return result;
  }
  if (part !== 'limit') await runRate(50);
  if (part !== 'truth')
    for (const rate of [50, 80, 100, 120, 130, 140, 150, 160, 180, 200, 240])
      if ((await runRate(rate)).client_bound) break;
} finally {
  server.close();
  close();
}
