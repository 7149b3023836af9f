// The load generator compared with other clients, against the same server in the same run. See README.md.
// node bench/load/peers.mjs --guidellm PATH --aiperf PATH --tokenizer FOLDER [--streams 20,100,500] [--seconds 2]
//   [--until-wrong MS]   finds the highest load that each client sustains: a client is left out after the first load for
//                        which its TTFT is wrong by more than MS at p50, a request failed, or it reported that it is
//                        the limit itself
// PATHs are the installed commands; nothing is installed here. FOLDER has a tokenizer.json, which both clients need.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { buildClient, describeMachine, loadAverage, runLoad, startServer } from './harness.mjs';

const { values } = parseArgs({
  options: {
    guidellm: { type: 'string' },
    aiperf: { type: 'string' },
    tokenizer: { type: 'string' },
    streams: { type: 'string', default: '20,100,500' },
    seconds: { type: 'string', default: '2' },
    'until-wrong': { type: 'string' },
  },
});
const seconds = Number(values.seconds);
/** Tokens per second per stream; three requests per stream, the first a warm-up. */
const rate = 50;
const firstMs = 200;
const tokens = rate * seconds;
const maxErrorMs = Number(values['until-wrong'] ?? Infinity);
/** Tokens and CPU seconds of each load, by client. */
const costs = new Map();
/** The highest load that a client sustained, tokens/s, and why higher loads were left out. */
const sustained = new Map();
const reasonsLeftOut = new Map();
const scratch = mkdtempSync(join(tmpdir(), 'load-peers-'));

/** Makes a cache in the layout of the Hugging Face hub's client, because both clients accept a tokenizer only by a name on the hub. */
function makeTokenizerCache() {
  const model = join(scratch, 'hub', 'models--local--words');
  const revision = '0'.repeat(40);
  const snapshot = join(model, 'snapshots', revision);
  mkdirSync(join(model, 'refs'), { recursive: true });
  mkdirSync(snapshot, { recursive: true });
  writeFileSync(join(model, 'refs', 'main'), revision);
  for (const name of ['tokenizer.json', 'tokenizer_config.json', 'special_tokens_map.json', 'config.json'])
    symlinkSync(join(resolve(values.tokenizer), name), join(snapshot, name));
}

/** Runs a command in bash, which reports the CPU time of all its processes. @returns this time, s */
async function measureCpuSeconds(command, args) {
  const child = spawn(
    'bash',
    ['-c', 'TIMEFORMAT="cpu %U %S"; time timeout -k 5 120 "$0" "$@"', command, ...args],
    {
      cwd: scratch,
      env: { ...process.env, HF_HOME: scratch, HF_HUB_OFFLINE: '1', TRANSFORMERS_OFFLINE: '1' },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  let text = '';
  child.stderr.on('data', (bytes) => (text += String(bytes)));
  const [code] = await once(child, 'close');
  const [, user, system] = /cpu ([\d.]+) ([\d.]+)\s*$/.exec(text) ?? [];
  if (code === 124) throw new Error('timed out after 120 s');
  if (code !== 0) throw new Error(`${command} exited with ${code}:\n${text.slice(-2000)}`);
  return Number(user) + Number(system);
}

/** Runs inferscope's client, which matches each request with the server's log: its result includes the true times. */
async function runInferscope(url, streams) {
  const result = await runLoad(folder, url, { streams, rate, seconds });
  const pair = ({ p50, p99 }) => [p50, p99];
  return {
    ...result,
    ttft: pair(result.ttft_ms),
    tpot: pair(result.tpot_ms),
    cpu: result.client_cpu_s,
    truth: { ttft: pair(result.server.ttft_ms), tpot: pair(result.server.tpot_ms) },
  };
}

async function runGuidellm(url, streams) {
  const path = join(scratch, `guidellm-${streams}.json`);
  const cpu = await measureCpuSeconds(
    resolve(values.guidellm),
    (
      `run --backend kind=openai_http,target=${url},model=programmed` +
      ` --profile kind=concurrent,streams=${streams},warmup=0.33` +
      ` --constraint kind=max_requests,count=${3 * streams}` +
      ` --data kind=synthetic_text,prompt_tokens=16,output_tokens=${tokens}` +
      ` --tokenizer kind=hf_auto,model=local/words --output kind=json,path=${path} --disable-console`
    ).split(' '),
  );
  const { metrics } = JSON.parse(readFileSync(path, 'utf8')).benchmarks[0];
  const ttft = metrics.time_to_first_token_ms.successful;
  const itl = metrics.inter_token_latency_ms.successful;
  return {
    ok: metrics.request_totals.successful,
    failed: metrics.request_totals.errored,
    ttft: [ttft.percentiles.p50, ttft.percentiles.p99],
    tpot: [itl.percentiles.p50, itl.percentiles.p99],
    cpu,
  };
}

async function runAiperf(url, streams) {
  const folder = join(scratch, `aiperf-${streams}`);
  const cpu = await measureCpuSeconds(
    resolve(values.aiperf),
    (
      `profile -m programmed --url ${url} --endpoint-type chat --streaming --tokenizer local/words` +
      ` --use-server-token-count --isl 16 --osl ${tokens} --concurrency ${streams}` +
      ` --request-count ${2 * streams} --warmup-request-count ${streams}` +
      ` --ui none --no-auto-plot --artifact-dir ${folder}`
    ).split(' '),
  );
  const summary = JSON.parse(readFileSync(join(folder, 'profile_export_aiperf.json'), 'utf8'));
  return {
    ok: summary.request_count.avg,
    failed: (summary.error_summary ?? []).reduce((sum, { count }) => sum + count, 0),
    ttft: [summary.time_to_first_token.p50, summary.time_to_first_token.p99],
    tpot: [summary.inter_token_latency.p50, summary.inter_token_latency.p99],
    cpu,
  };
}

const quantile = (sorted, share) => sorted[Math.floor((sorted.length - 1) * share)];
/** p50 and p99 of the times that the server logged, without the warm-up (the first request of each stream). */
function serverLatencies(entries, streams) {
  const streamed = entries.filter(({ writes_ns: writes }) => writes.length > 1).slice(streams);
  const percentilesOf = (value) => {
    const sorted = streamed.map(value).sort((x, y) => x - y);
    return [quantile(sorted, 0.5), quantile(sorted, 0.99)];
  };
  return {
    ttft: percentilesOf(({ read_ns: read, writes_ns: writes }) => (writes[0] - read) / 1e6),
    tpot: percentilesOf(({ writes_ns: writes }) => (writes.at(-1) - writes[0]) / 1e6 / (writes.length - 1)),
  };
}

const ms = (value) => (value === null ? '–' : value.toFixed(2));
function printRow(name, streams, loadBefore, result, truth) {
  const error = (figure, index) => ms(Math.abs(result[figure][index] - truth[figure][index]));
  const cells = [
    name,
    `${streams * rate}`,
    `${result.ok}${result.failed ? ` (${result.failed} failed)` : ''}`,
    `${ms(result.ttft[0])} / ${ms(truth.ttft[0])}`,
    `${error('ttft', 0)}, ${error('ttft', 1)}`,
    `${error('tpot', 0)}, ${error('tpot', 1)}`,
    result.cpu.toFixed(1),
    loadBefore,
  ];
  console.log(`| ${cells.join(' | ')} |`);
  const spent = costs.get(name) ?? [];
  costs.set(name, [...spent, { tokens: 3 * streams * tokens, cpu: result.cpu }]);
  judge(name, streams, result, Math.abs(result.ttft[0] - truth.ttft[0]));
}

function judge(name, streams, result, ttftErrorMs) {
  if (ttftErrorMs > maxErrorMs) leaveOut(name, streams, `TTFT off by ${ms(ttftErrorMs)} ms at p50`);
  else if (result.failed) leaveOut(name, streams, `${result.failed} requests failed`);
  else if (result.client_bound)
    leaveOut(name, streams, `reports itself as the limit: ${result.reasons.join('; ')}`);
  else sustained.set(name, streams * rate);
}

function leaveOut(name, streams, why) {
  reasonsLeftOut.set(name, `${why} at ${streams * rate} tokens/s`);
}

function printLimits() {
  for (const [name] of clients)
    console.log(
      `${name}: sustains ${sustained.get(name) ?? 'none of the loads'}${sustained.has(name) ? ' tokens/s' : ''}; ${reasonsLeftOut.get(name) ?? 'no higher load was run'}`,
    );
}

/** Startup takes CPU seconds, so the cost per token is the slope between the smallest and the largest load. */
function printTokenCosts() {
  for (const [name, spent] of costs) {
    const [shortest, longest] = [spent[0], spent.at(-1)];
    if (longest.tokens > shortest.tokens) {
      const cost_us = ((longest.cpu - shortest.cpu) * 1e6) / (longest.tokens - shortest.tokens);
      console.log(`${name}: ${cost_us.toFixed(1)} µs of CPU per token`);
    }
  }
}

const { folder, close } = await buildClient();
const server = await startServer();
const searching = values['until-wrong'] !== undefined;
const clients = [
  ['inferscope', runInferscope],
  ...(values.guidellm ? [['guidellm', runGuidellm]] : []),
  ...(values.aiperf ? [['aiperf', runAiperf]] : []),
];
try {
  if (values.tokenizer) makeTokenizerCache();
  await server.setDefaults({ first_ms: firstMs, gap_ms: 1000 / rate });
  console.log(describeMachine());
  console.log(
    '| client | tok/s | requests | TTFT p50, client / server (ms) | TTFT error, p50 and p99 (ms) | TPOT error, p50 and p99 (ms) | CPU (s) | load before |\n|---|---|---|---|---|---|---|---|',
  );
  for (const streams of values.streams.split(',').map(Number)) {
    for (const [name, run] of clients) {
      if (searching && reasonsLeftOut.has(name)) continue;
      const loadBefore = loadAverage();
      // Drops the requests of a client that failed.
      await server.readLog();
      try {
        const { truth, ...result } = await run(server.url, streams);
        printRow(
          name,
          streams,
          loadBefore,
          result,
          truth ?? serverLatencies(await server.readLog(), streams),
        );
      } catch (error) {
        const why = String(error.message).split('\n').at(-1);
        console.log(`| ${name} | ${streams * rate} | ${why} | | | | | |`);
        leaveOut(name, streams, why);
      }
    }
  }
  printTokenCosts();
  if (searching) printLimits();
} finally {
  server.close();
  close();
  rmSync(scratch, { recursive: true, force: true });
}
