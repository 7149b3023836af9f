// What the load generator measures against what the server says it wrote, and how much it bears. See README.md.
// node bench/load/run.mjs [truth|limit|all] [seconds]
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { build } from 'tsdown';

const root = fileURLToPath(new URL('../..', import.meta.url));
const [what = 'all', secondsText = '6'] = process.argv.slice(2);
const seconds = Number(secondsText);
const folder = mkdtempSync(join(tmpdir(), 'load-bench-'));
symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));

await build({
  cwd: root,
  config: false,
  entry: { client: 'bench/load/client.ts', 'load-worker': 'src/load/worker.ts' },
  outDir: folder,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  dts: false,
  clean: false,
  logLevel: 'error',
  outExtensions: () => ({ js: '.mjs' }),
});

const server = spawn(process.execPath, [join(root, 'bench/load/server.mjs')], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
const [line] = await once(server.stdout, 'data');
const url = `http://127.0.0.1:${JSON.parse(line).port}`;

function load(streams, rate, threads = 1) {
  const args = [url, streams, rate, seconds, threads, join(folder, 'load-worker.mjs')].map(String);
  const text = execFileSync(process.execPath, [join(folder, 'client.mjs'), ...args], {
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  });
  return JSON.parse(text);
}

function show(result) {
  const { ttft_error_ms: ttft, tpot_error_ms: tpot, stamp_error_ms: stamp, server_late_ms: late } = result;
  console.log(
    `${result.streams} streams, ${result.asked_tokens_per_s} tok/s asked, ${result.tokens_per_s} written, ${result.failed} failed\n` +
      `  |error| p99 ms: TTFT ${ttft.p99}, TPOT ${tpot.p99}; each stamp p50 ${stamp.p50} p99 ${stamp.p99} max ${stamp.max}; server late p99 ${late.p99}\n` +
      `  client: ${result.client_cpu_us_per_token} µs CPU a token, ${result.client_cores} cores, loop busy ${result.event_loop_utilization}, late p99 ${result.event_loop_delay_p99_ms} ms; bound: ${result.client_bound ? result.reasons.join('; ') : 'no'}`,
  );
}

try {
  const busy = loadavg()[0].toFixed(1);
  console.log(
    `${cpus()[0].model}, ${availableParallelism()} cores, Node ${process.version}, load average ${busy} before`,
  );
  if (what !== 'limit') show(load(500, 50));
  if (what !== 'truth') {
    for (const rate of [50, 80, 120, 160, 200]) {
      const result = load(500, rate);
      show(result);
      if (result.client_bound) break;
    }
  }
} finally {
  server.kill();
  rmSync(folder, { recursive: true, force: true });
}
