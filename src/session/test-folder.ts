import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { homeFolders, type Home } from './home.js';

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A temporary folder that is removed after the test file. */
export function testFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'inferscope-session-test-'));
  folders.push(folder);
  return folder;
}

/** A new empty home. */
export function testHome(): Home {
  return homeFolders({ INFERSCOPE_HOME: testFolder() });
}
