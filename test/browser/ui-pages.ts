import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { packageRoot } from '../../src/model/installation.js';
import { inferscope, place, type Place } from '../cli/profile-cli.js';
import { launchBrowser } from './chromium.js';
import { idOf as idIn, sqlRows, startUi, type UiServer, visit } from './ui-server.js';

export const fixture = (path: string): string => join(packageRoot(), 'test', 'fixtures', path);

/** `inferscope ui` with a planted fault and its repaired twin, and pages of it. */
export class UiPages {
  readonly setup: Place = place();
  /** Errors and warnings that the pages wrote to the console. */
  readonly complaints: string[] = [];
  server!: UiServer;
  base!: string;
  #browser: Browser | undefined;
  #context!: BrowserContext;
  readonly #ids = new Map<string, string>();

  constructor() {
    beforeAll(() => this.#start(), 180_000);
    afterAll(async () => {
      await this.#browser?.close();
      this.server?.child.kill('SIGKILL');
    });
  }

  async #start(): Promise<void> {
    for (const name of ['launch_bound_decode-fault', 'launch_bound_decode-fixed'])
      expect(inferscope(this.setup, ['session', 'import', fixture(`diagnosis/${name}.tgz`)]).status).toBe(0);
    this.server = await startUi(this.setup);
    this.base = this.server.origin;
    this.#browser = await launchBrowser();
    this.#context = await this.#browser.newContext({ viewport: { width: 1280, height: 800 } });
    this.#context.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) this.complaints.push(message.text());
    });
    this.#context.on('weberror', (error) => this.complaints.push(error.error().message));
    const page = await this.#context.newPage();
    await page.goto(this.server.url);
    expect(page.url()).toBe(`${this.base}/`);
    await page.close();
  }

  async open(path: string): Promise<Page> {
    const page = await this.#context.newPage();
    await visit(page, `${this.base}${path}`);
    return page;
  }

  idOf(name: string): string {
    const id = this.#ids.get(name) ?? idIn(this.setup, name);
    this.#ids.set(name, id);
    return id;
  }

  timelineOf(name: string): string {
    return `/s/${this.idOf(name)}/timeline`;
  }

  sql(name: string, query: string): (string | number)[][] {
    return sqlRows(this.setup, name, query);
  }
}
