import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { cli, environment, inferscope, type Place } from '../cli/profile-cli.js';

export interface UiServer {
  child: ChildProcess;
  /** URL with the access token. */
  url: string;
  origin: string;
}

/** Starts `inferscope ui` on a free port and waits until it listens. */
export async function startUi(setup: Place): Promise<UiServer> {
  const child = spawn(process.execPath, [cli, 'ui', '--no-open', '--port', '0'], {
    cwd: setup.scratch,
    env: environment(setup),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const url = line.toString().trim();
  return { child, url, origin: new URL(url).origin };
}

/** Opens a page and waits for its content: a progress page may be shown first, which reloads itself. */
export async function visit(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await expect
    .poll(
      // While the page reloads, its document may be missing.
      () =>
        page
          .evaluate(
            `document.readyState === 'complete' && !document.querySelector('meta[http-equiv="refresh"]')`,
          )
          .catch(() => false),
      { timeout: 60_000, interval: 200 },
    )
    .toBe(true);
}

export function idOf(setup: Place, name: string): string {
  const { stdout } = inferscope(setup, ['session', 'show', name, '--json']);
  return (JSON.parse(stdout) as { data: { manifest: { id: string } } }).data.manifest.id;
}

/** Rows of a query, read with `inferscope sql`. */
export const sqlRows = (setup: Place, name: string, query: string): (string | number)[][] =>
  (
    JSON.parse(inferscope(setup, ['sql', name, query, '--json']).stdout) as {
      data: { rows: (string | number)[][] };
    }
  ).data.rows;

/** Waits until a timeline page is completely drawn. */
export const timelineReady = (page: Page) =>
  page.waitForSelector('#timeline[data-ready]', { timeout: 60_000 });
