import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { packageRoot } from '../model/installation.js';
import type { LoadTarget } from './target.js';

interface LoggedRequest {
  id: string | null;
  prompt: string;
  read_ns: number;
  writes_ns: number[];
}

export interface ProgrammedServer {
  url: string;
  /** The requests since the last call, with the times of their writes (CLOCK_MONOTONIC). */
  readLog(): Promise<LoggedRequest[]>;
  /** The number of tokens written so far. */
  readTokenCount(): Promise<number>;
  stop(): void;
}

/**
 * Starts the server of bench/load, which has programmed delays and faults, as a separate process.
 * @param tls PEM, for https
 */
export async function startProgrammedServer(tls?: { key: string; cert: string }): Promise<ProgrammedServer> {
  const child = spawn(process.execPath, [join(packageRoot(), 'bench', 'load', 'server.mjs')], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...(tls ? { TLS_KEY: tls.key, TLS_CERT: tls.cert } : {}) },
  });
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout.once('data', (bytes: Buffer) => resolve(bytes.toString()));
    child.once('exit', (code) => reject(new Error(`the programmed server exited with ${code}`)));
  });
  const { port } = JSON.parse(line) as { port: number };
  const url = `${tls ? 'https' : 'http'}://127.0.0.1:${port}`;
  return {
    url,
    readLog: async () => (await (await fetch(`${url}/log`)).json()) as LoggedRequest[],
    readTokenCount: async () => {
      const page = await (await fetch(`${url}/metrics`)).text();
      return Number(/generation_tokens_total\{.*\} (\d+)/.exec(page)![1]);
    },
    stop: () => child.kill(),
  };
}

/** Aborts once the server has written this many more tokens, at any machine speed. */
export async function abortAfter(
  server: ProgrammedServer,
  tokens: number,
  controller: AbortController,
): Promise<void> {
  const before = await server.readTokenCount();
  while ((await server.readTokenCount()) < before + tokens) await sleep(5);
  controller.abort();
}

export function testTarget(server: ProgrammedServer, extraBody: Record<string, unknown> = {}): LoadTarget {
  return {
    baseUrl: `${server.url}/v1`,
    api: 'completions',
    model: 'programmed',
    apiKey: null,
    headers: {},
    temperature: 0,
    ignoreEos: true,
    extraBody,
    timeoutMs: 5000,
  };
}
