import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

/** One folder for the temporary folders of a run, because workers that share modules cannot remove them file by file. */
export default function setup() {
  const folder = mkdtempSync(join(tmpdir(), 'inferscope-tests-'));
  process.env['INFERSCOPE_TEST_FOLDER'] = folder;
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}
