import { writeFile } from 'node:fs/promises';
import { existsSync, statSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import process from 'node:process';
import type { BenchPart } from '../model/bench.js';
import { exitCodeOf, InferscopeError } from '../model/errors.js';
import { makeFolder } from '../session/home.js';
import { openSession } from '../session/open.js';
import { asStorageFailure } from '../session/storage-failure.js';
import type { BenchTyped } from './bench-options.js';
import { interruptible } from './interrupt.js';
import { print, printDocument, talk, terminalWidth, warn } from './output.js';
import { startProgress } from './progress.js';

/** What every bench verb with an engine does. Sets the exit code. */
export async function benchCommand(verb: BenchPart | 'suite', typed: BenchTyped): Promise<void> {
  const { runBenchSession } = await import('./bench-run.js');
  ensureResults(typed.output);
  const progress = startProgress(typed.quiet === true);
  const kept = await interruptible((signal) => runBenchSession(verb, typed, signal, progress)).finally(() =>
    progress.end(),
  );
  const { analyzeBench } = await import('../analyze/bench/bench.js');
  const document = await analyzeBench(await openSession(kept.id));
  const { benchFiles } = await import('../export/bench-files.js');
  const files = benchFiles(document);
  for (const { name, text } of files) await writeResult(join(resolve(typed.output), name), text);
  if (typed.json) printDocument(document);
  else print(document.data.session.title);
  if (!typed.quiet) {
    const names = files.map(({ name }) => name).join(', ');
    talk(`${names} in ${relative(process.cwd(), resolve(typed.output)) || '.'}`);
  }
  if (kept.interrupted) {
    warn(`interrupted: session ${kept.id} holds what was measured until then`);
    process.exitCode = exitCodeOf.E_INTERRUPTED;
  }
}

/** Tries the place of the files before anything is measured for them. @throws E_USAGE, E_HOME_UNWRITABLE */
function ensureResults(folder: string): void {
  const path = resolve(folder);
  if (existsSync(path) && !statSync(path).isDirectory()) {
    throw new InferscopeError('E_USAGE', {
      what: `--output ${folder} is a file`,
      why: 'A benchmark writes several files: it takes a folder.',
      fix: 'Type for example: --output results',
    });
  }
  try {
    makeFolder(path);
  } catch (error) {
    throw asStorageFailure(error, { path, doing: 'make the folder for results' });
  }
}

async function writeResult(path: string, text: string): Promise<void> {
  try {
    await writeFile(path, text);
  } catch (error) {
    throw asStorageFailure(error, { path, doing: 'write the results' });
  }
}

void terminalWidth;
