import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { document } from '../../model/document.js';
import { type Baseline, baselineDocumentSchema, baselineVersion } from '../../model/documents/baseline.js';
import { InferscopeError, messageOf, systemErrorCode } from '../../model/errors.js';
import { parseJson } from '../../model/parse-json.js';
import { ensureWritable, type Home, homeFolders } from '../../session/home.js';
import { asStorageFailure } from '../../vocabulary/storage-failure.js';
import { writeAtomically } from '../../model/atomic-write.js';

const namePattern = /^[A-Za-z0-9][\w.-]{0,63}$/;

const folderOf = (home: Home): string => join(home.root, 'baselines');

/** @throws E_USAGE for a name that is not a valid file name */
export function checkBaselineName(name: string): void {
  if (namePattern.test(name) && !name.endsWith('.json')) return;
  throw new InferscopeError('E_USAGE', {
    what: `a baseline cannot be called "${name}"`,
    why: 'Names have 1 to 64 letters, digits, dots, dashes and underscores, and do not end in .json (that is a file).',
    fix: 'For example: inferscope baseline set @last --name main',
  });
}

/**
 * Stores a baseline by name or in a user's file, completely or not at all.
 * @returns the path
 * @throws E_HOME_UNWRITABLE, E_DISK_FULL
 */
export async function writeBaseline(
  baseline: Baseline,
  file: string | undefined,
  home: Home = homeFolders(),
): Promise<string> {
  const path = file === undefined ? join(folderOf(home), `${baseline.name}.json`) : resolve(file);
  const text = `${JSON.stringify(document('baseline', baselineVersion, baseline), null, 2)}\n`;
  try {
    if (file === undefined) ensureWritable(home);
    writeAtomically(path, text);
  } catch (error) {
    throw asStorageFailure(error, { path, doing: 'save the baseline', home: file === undefined });
  }
  return path;
}

/** Whether the text can be a baseline's file, and cannot be its name. */
export const isBaselineFile = (selector: string): boolean => /\.json$|[/\\]/.test(selector);

/**
 * @param selector a name, or the path of a file (ends in .json or contains a slash)
 * @throws E_USAGE if the name does not exist, E_RECORD_FILE if the file is not a baseline
 */
export async function readBaseline(selector: string, home: Home = homeFolders()): Promise<Baseline> {
  const isFile = isBaselineFile(selector);
  if (!isFile) checkBaselineName(selector);
  const path = isFile ? resolve(selector) : join(folderOf(home), `${selector}.json`);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw unreadable(path, messageOf(error), error);
    const names = await baselineNames(home);
    throw new InferscopeError('E_USAGE', {
      what: isFile ? `there is no baseline file ${path}` : `there is no baseline "${selector}"`,
      why: names.length > 0 ? `Saved: ${names.join(', ')}.` : 'No baseline is saved yet.',
      fix:
        names.length > 0 && !isFile
          ? `Use a saved one: --baseline ${names[0]!}, or set this one: inferscope baseline set SESSION --name ${selector}`
          : `Set it with: inferscope baseline set SESSION ${isFile ? `--file ${selector}` : `--name ${selector}`}`,
    });
  }
  let parsed: unknown;
  try {
    parsed = parseJson(text);
  } catch (error) {
    throw unreadable(path, `It is not JSON: ${messageOf(error)}`, error);
  }
  const checked = baselineDocumentSchema.safeParse(parsed);
  if (checked.success) return checked.data.data;
  const [issue] = checked.error.issues;
  throw unreadable(
    path,
    `${issue?.path.join('.') ?? ''}: ${issue?.message ?? checked.error.message}`,
    checked.error,
  );
}

export async function baselineNames(home: Home = homeFolders()): Promise<string[]> {
  try {
    const files = await readdir(folderOf(home));
    return files
      .filter((file) => file.endsWith('.json'))
      .map((file) => file.slice(0, -'.json'.length))
      .sort();
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw error;
  }
}

function unreadable(path: string, why: string, cause: unknown): InferscopeError {
  return new InferscopeError(
    'E_RECORD_FILE',
    { what: `${path} is not a baseline`, why, fix: 'Set it again with: inferscope baseline set SESSION' },
    { cause },
  );
}
