// Measures how much `inferscope monitor` slows down a decode loop of CUDA graphs. See README.md.
// node bench/sampler-cost/run.mjs [--pairs 25] [--seconds 2] [--hz 20] [--python python3] [--cli dist/cli.js]
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const here = dirname(fileURLToPath(import.meta.url));
const { values } = parseArgs({
  options: {
    pairs: { type: 'string', default: '25' },
    seconds: { type: 'string', default: '2' },
    hz: { type: 'string', default: '20' },
    python: { type: 'string', default: process.env.INFERSCOPE_PYTHON ?? 'python3' },
    cli: { type: 'string', default: join(here, '..', '..', 'dist', 'cli.js') },
  },
});
const pairs = Number(values.pairs);
const blockNs = Number(values.seconds) * 1e9;
/** Excluded after a switch: the stopped process has to wake up, or to finish its current sample. */
const settleNs = 0.2e9;
const goal = 0.01;
const now = () => Number(process.hrtime.bigint());

const decode = spawn(values.python, [join(here, 'decode.py')], { stdio: ['pipe', 'pipe', 'inherit'] });
const reports = [];
createInterface({ input: decode.stdout }).on('line', (line) => reports.push(JSON.parse(line)));
const decodeExit = once(decode, 'exit');
/** Starts a monitor. @returns its process, and a promise of its document */
function startMonitor(...more) {
  const args = [values.cli, 'monitor', '--hz', values.hz, '--json', '--quiet', '--require-gpu', ...more];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (chunk) => (text += chunk));
  return { child, document: once(child, 'close').then(() => JSON.parse(text)) };
}

/** Waits until the condition holds; exits if a process exits before. */
async function waitUntil(condition, what) {
  for (let tries = 0; tries < 1200; tries++) {
    if (decode.exitCode !== null || monitor.exitCode !== null) {
      monitor.kill('SIGKILL');
      decode.kill('SIGKILL');
      console.error(`${decode.exitCode !== null ? 'decode.py' : 'the monitor'} exited before ${what}`);
      process.exit(3);
    }
    if (condition()) return;
    await sleep(50);
  }
  console.error(`waited a minute for ${what}`);
  process.exit(3);
}

/** Tokens per second between the first and the last report inside the block. */
function rateOf({ from, to }) {
  const inside = reports.filter(({ t_ns }) => t_ns >= from + settleNs && t_ns <= to);
  const [first, last] = [inside[0], inside.at(-1)];
  return ((last.tokens - first.tokens) / (last.t_ns - first.t_ns)) * 1e9;
}

const { child: monitor, document } = startMonitor();
await waitUntil(() => reports.length > 40, 'two seconds of decoding');
// The cost per sample is measured by another monitor, which is never stopped.
const { plan } = (await startMonitor('--duration', '3s').document).data;
// A stopped process takes no samples and no CPU time.
const blocks = { off: [], on: [] };
for (let pair = 0; pair < pairs; pair++) {
  // Pairs alternate between off–on and on–off, so that a drift affects both equally.
  for (const state of pair % 2 === 0 ? ['off', 'on'] : ['on', 'off']) {
    process.kill(monitor.pid, state === 'on' ? 'SIGCONT' : 'SIGSTOP');
    const from = now();
    await sleep(blockNs / 1e6);
    blocks[state].push({ from, to: now() });
  }
}
process.kill(monitor.pid, 'SIGCONT');
monitor.kill('SIGINT');
const { data } = await document;
decode.stdin.end();
await decodeExit;

const off = blocks.off.map(rateOf);
const on = blocks.on.map(rateOf);
const differences = off.map((rate, pair) => on[pair] / rate - 1);
const mean = (list) => list.reduce((sum, value) => sum + value, 0) / list.length;
const sd = (list) =>
  Math.sqrt(list.reduce((sum, value) => sum + (value - mean(list)) ** 2, 0) / (list.length - 1));
const center = mean(differences);
const half = (studentT(pairs - 1) * sd(differences)) / Math.sqrt(pairs);

/** 97.5 % quantile of Student's t: Cornish-Fisher, within 0.2 % from 9 degrees of freedom on (2.262 at 9). */
function studentT(df) {
  const z = 1.959964;
  return (
    z +
    (z ** 3 + z) / (4 * df) +
    (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * df ** 2) +
    (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / (384 * df ** 3)
  );
}

const cost = plan.sample_cost_us;
const percent = (share) => `${(100 * share).toFixed(2)} %`;
const energy = data.devices[0].power.energy_j;
console.log(
  `${plan.gpus.map(({ name }) => name).join(', ')}, ${plan.tool}, driver ${plan.driver}; ${Math.round(energy.value ?? 0)} J in all`,
);
console.log(
  `${pairs} pairs of blocks of ${values.seconds} s, sampler at ${values.hz} Hz (with details once per second)\n`,
);
console.log('sampler   tokens/s mean        sd       min       max');
for (const [name, rates] of [
  ['off', off],
  ['on', on],
]) {
  const row = [mean(rates), sd(rates), Math.min(...rates), Math.max(...rates)];
  console.log(
    `${name.padEnd(8)}${row.map((value, index) => value.toFixed(2).padStart(index === 0 ? 15 : 10)).join('')}`,
  );
}
console.log(
  `\non / off − 1: ${percent(center)}, 95 % interval [${percent(center - half)}, ${percent(center + half)}] over ${pairs} pairs`,
);
const loss = -(center - half);
console.log(
  `throughput lost: at most ${percent(Math.max(0, loss))} (95 %); goal < ${percent(goal)}: ${loss < goal ? 'met' : 'not met'}`,
);
console.log(
  `a sample takes the monitor ${cost.gpus.mean.toFixed(0)} µs (max ${cost.gpus.max.toFixed(0)}) for all GPUs, ${cost.host.mean.toFixed(0)} µs for the host`,
);
process.exitCode = loss < goal ? 0 : 1;
