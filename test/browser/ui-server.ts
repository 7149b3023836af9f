import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { cli, environment, inferscope, type Place } from '../cli/profile-cli.js';

export interface UiServer {
  child: ChildProcess;
  /** With the token. */
  url: string;
  origin: string;
}

/** `inferscope ui` on a free port, once it listens. */
export async function startUi(at: Place): Promise<UiServer> {
  const child = spawn(process.execPath, [cli, 'ui', '--no-open', '--port', '0'], {
    cwd: at.scratch,
    env: environment(at),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const url = line.toString().trim();
  return { child, url, origin: new URL(url).origin };
}

/** Opens a page, and waits for it where one that says what is being done comes first and asks again. */
export async function visit(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await expect
    .poll(
      // Between two of these pages there is a moment without either: a page that is loading, or gone.
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

export function idOf(at: Place, name: string): string {
  const { stdout } = inferscope(at, ['session', 'show', name, '--json']);
  return (JSON.parse(stdout) as { data: { manifest: { id: string } } }).data.manifest.id;
}

/** Rows of a statement, by the command. */
export const sqlRows = (at: Place, name: string, query: string): (string | number)[][] =>
  (
    JSON.parse(inferscope(at, ['sql', name, query, '--json']).stdout) as {
      data: { rows: (string | number)[][] };
    }
  ).data.rows;

/** Once a page of a timeline shows all of it. */
export const timelineReady = (page: Page) =>
  page.waitForSelector('#timeline[data-ready]', { timeout: 60_000 });
