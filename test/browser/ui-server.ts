import { type ChildProcess } from 'node:child_process';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { inferscope, type TestSetup, startServer } from '../cli/run-cli.js';

export interface UiServer {
  child: ChildProcess;
  /** URL with the access token. */
  url: string;
  origin: string;
}

/** Starts `inferscope ui` on a free port and waits until it listens. */
export async function startUi(setup: TestSetup): Promise<UiServer> {
  const { child, url } = await startServer(setup, ['ui', '--no-open', '--port', '0']);
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

/** The id of a session. */
export function idOf(setup: TestSetup, name: string): string {
  const { stdout } = inferscope(setup, ['session', 'show', name, '--json']);
  return (JSON.parse(stdout) as { data: { manifest: { id: string } } }).data.manifest.id;
}

/** Waits until a timeline page is completely drawn. */
export const waitForTimeline = (page: Page) =>
  page.waitForSelector('#timeline[data-ready]', { timeout: 60_000 });
