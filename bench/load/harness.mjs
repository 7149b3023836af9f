// Shared by run.mjs and peers.mjs: builds the client from src/load, starts the programmed server, and runs one load.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));

export const loadAverage = () => loadavg()[0].toFixed(1);
export const describeMachine = () =>
  `${new Date().toISOString().slice(0, 16)}Z, ${cpus()[0].model.trim()}, ${availableParallelism()} cores, Node ${process.version}, load average ${loadAverage()} before`;

/** Builds the client into a temporary folder; `close` removes it. LOAD_CLIENT names a folder with an earlier build. */
export async function buildClient() {
  const built = process.env['LOAD_CLIENT'];
  if (built) return { folder: built, close: () => {} };
  const { build } = await import('tsdown');
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
  return { folder, close: () => rmSync(folder, { recursive: true, force: true }) };
}

export async function startServer() {
  const child = spawn(process.execPath, [join(root, 'bench/load/server.mjs')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(child.stdout, 'data');
  const url = `http://127.0.0.1:${JSON.parse(line).port}`;
  return {
    url,
    /** The requests since the last call, with the times of their writes. */
    readLog: async () => (await fetch(`${url}/log`)).json(),
    setDefaults: (fields) => fetch(`${url}/defaults`, { method: 'POST', body: JSON.stringify(fields) }),
    close: () => child.kill(),
  };
}

/** Runs one load in a separate process, which is killed if it takes four times as long as planned. */
export async function runLoad(folder, url, { streams, rate, seconds, threads = 1 }) {
  const args = [url, streams, rate, seconds, threads, join(folder, 'load-worker.mjs')].map(String);
  const { stdout } = await promisify(execFile)(process.execPath, [join(folder, 'client.mjs'), ...args], {
    maxBuffer: 1 << 26,
    timeout: (30 + 4 * 3 * seconds) * 1000,
    killSignal: 'SIGKILL',
  });
  return JSON.parse(stdout);
}
