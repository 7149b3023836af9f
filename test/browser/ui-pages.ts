import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { fixture } from '../cli/capture-files.js';
import { createSetup, inferscope, sqlRows, type TestSetup } from '../cli/run-cli.js';
import { launchBrowser } from './chromium.js';
import { idOf, startUi, type UiServer, visit } from './ui-server.js';

/** Imports an archive of test/fixtures, under its name or the given one. */
export function importArchive(setup: TestSetup, path: string, name?: string): void {
  const { status, stdout, stderr } = inferscope(setup, ['session', 'import', fixture(path), '--json']);
  expect(status, stderr).toBe(0);
  const { id } = (JSON.parse(stdout) as { data: { id: string } }).data;
  if (name !== undefined) expect(inferscope(setup, ['session', 'rename', id, name]).status).toBe(0);
}

/** A planted fault and its fixed variant. */
function importLaunchBound(setup: TestSetup): void {
  for (const name of ['launch_bound_decode-fault', 'launch_bound_decode-fixed'])
    importArchive(setup, `diagnosis/${name}.tgz`);
}

/** `inferscope ui` with the sessions that `importSessions` adds (default: launch-bound decode), and pages of it in a browser. */
export class UiPages {
  readonly setup: TestSetup = createSetup();
  /** Errors and warnings that the pages wrote to the console. */
  readonly complaints: string[] = [];
  server!: UiServer;
  browser!: Browser;
  /** A context that has the access token. */
  context!: BrowserContext;
  readonly #ids = new Map<string, string>();

  constructor(
    importSessions: (setup: TestSetup) => void = importLaunchBound,
    browserArgs: readonly string[] = [],
  ) {
    beforeAll(async () => {
      importSessions(this.setup);
      await this.#start(browserArgs);
    }, 180_000);
    afterAll(async () => {
      await this.browser?.close();
      this.server?.child.kill('SIGKILL');
    });
  }

  async #start(browserArgs: readonly string[]): Promise<void> {
    this.server = await startUi(this.setup);
    this.browser = await launchBrowser(browserArgs);
    this.context = await this.browser.newContext({ viewport: { width: 1280, height: 800 } });
    this.context.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) this.complaints.push(message.text());
    });
    this.context.on('weberror', (error) => this.complaints.push(error.error().message));
    const page = await this.context.newPage();
    await page.goto(this.server.url);
    expect(page.url()).toBe(`${this.server.origin}/`);
    await page.close();
  }

  async open(path: string): Promise<Page> {
    const page = await this.context.newPage();
    await visit(page, `${this.server.origin}${path}`);
    return page;
  }

  idOf(name: string): string {
    const id = this.#ids.get(name) ?? idOf(this.setup, name);
    this.#ids.set(name, id);
    return id;
  }

  /** The path of a page of a session: '' for its overview, '/kernels'. */
  pathOf(name: string, page = ''): string {
    return `/s/${this.idOf(name)}${page}`;
  }

  sql(name: string, query: string): (string | number)[][] {
    return sqlRows(this.setup, name, query);
  }
}
