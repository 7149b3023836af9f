import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { packageRoot } from '../model/installation.js';
import type { LoadTarget } from './target.js';

export interface LoggedRequest {
  id: string | null;
  prompt: string;
  read_ns: number;
  writes_ns: number[];
}

export interface ProgrammedServer {
  url: string;
  /** What it wrote and when (CLOCK_MONOTONIC), since the last call. */
  log(): Promise<LoggedRequest[]>;
  stop(): void;
}

/** The server of bench/load with programmed delays and faults, as a process of its own. @param tls PEM, for https */
export async function programmedServer(tls?: { key: string; cert: string }): Promise<ProgrammedServer> {
  const child = spawn(process.execPath, [join(packageRoot(), 'bench', 'load', 'server.mjs')], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...(tls ? { TLS_KEY: tls.key, TLS_CERT: tls.cert } : {}) },
  });
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout.once('data', (bytes: Buffer) => resolve(bytes.toString()));
    child.once('exit', (code) => reject(new Error(`the programmed server ended with ${code}`)));
  });
  const { port } = JSON.parse(line) as { port: number };
  const url = `${tls ? 'https' : 'http'}://127.0.0.1:${port}`;
  return {
    url,
    log: async () => (await (await fetch(`${url}/log`)).json()) as LoggedRequest[],
    stop: () => child.kill(),
  };
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
    timeout_ms: 5000,
  };
}
