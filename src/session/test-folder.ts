import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { homeFolders, type Home } from './home.js';

/** A temporary folder that is removed after the tests (test/temporary-folder.mjs). */
export const testFolder = (): string =>
  mkdtempSync(join(process.env['INFERSCOPE_TEST_FOLDER'] ?? tmpdir(), 'inferscope-session-test-'));

/** A new empty home. */
export function testHome(): Home {
  return homeFolders({ INFERSCOPE_HOME: testFolder() });
}
