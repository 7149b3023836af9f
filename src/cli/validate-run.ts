import { validateVersion, type Validation, type ValidationHistory } from '../model/documents/validate.js';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { historyDocument } from '../facts/validate/history.js';
import { toleranceOf, validateProfiles } from '../facts/validate/validate.js';
import { validateCsv } from '../export/validate-csv.js';
import { document, type Document, type Issue } from '../model/document.js';
import { InferscopeError } from '../model/errors.js';
import { stampOf } from '../model/result-names.js';
import { recordSession } from '../record/record-session.js';
import { pageOfView } from '../render/html/view.js';
import { terminalView } from '../render/terminal/view.js';
import { listSessions } from '../session/list.js';
import { openSession } from '../session/open.js';
import { viewOf } from '../views/registry.js';
import { readConfiguration, type ConfigurationOptions } from './profile-configuration.js';
import { writePage } from './report-file.js';
import { claimNames, resultsFolder, writeResult } from './results-folder.js';
import { readProfiles } from './validate-read.js';
import { formatShareSetting } from '../vocabulary/format.js';

interface ReportFiles {
  summary: string;
  csv: string;
  html: string;
}

/**
 * Compares memory estimates with profiles and saves the result as a session of kind validate.
 * @throws E_USAGE without profiles, E_FORMAT_UNKNOWN, E_SESSION_NOT_FOUND, E_DISK_FULL, E_HOME_UNWRITABLE
 */
export async function validate(
  paths: readonly string[],
  options: { tolerance: number; name?: string } & ConfigurationOptions,
): Promise<Document<Validation>> {
  const { profiles, ignored } = await readProfiles(paths, await readConfiguration(options));
  const data: Validation = {
    session: null,
    ...validateProfiles(profiles, toleranceOf(options.tolerance)),
  };
  const issues: Issue[] =
    ignored > 0
      ? [
          {
            code: 'files_ignored',
            severity: 'info',
            text: `${ignored} JSON files are not memory profiles.`,
            count: ignored,
          },
        ]
      : [];
  const session = await saveValidation(data, options, issues);
  return document('validate', validateVersion, { ...data, session }, issues);
}

async function saveValidation(
  data: Validation,
  { name, tolerance }: { tolerance: number; name?: string },
  issues: Issue[],
): Promise<NonNullable<Validation['session']>> {
  const plan = {
    label: 'memory-estimates',
    kind: 'validate',
    name: name ?? null,
    tags: [],
    doing: 'save the validation',
  };
  const { id, startedAt } = await recordSession(plan, async (recording) => {
    await recording.saveJson('validation', data);
    const { compared, within_tolerance, rejected } = data.counts;
    const title = `validate · ${within_tolerance} of ${compared} within ${formatShareSetting(tolerance)}${rejected > 0 ? `, ${rejected} rejected` : ''}`;
    return { title, status: 'complete', issues, result: { startedAt: recording.startedAt } };
  });
  return { id, started_at: startedAt.toISOString() };
}

/**
 * Writes summary with details, CSV and page, named after the current time.
 * @throws E_DISK_FULL, E_HOME_UNWRITABLE
 */
export async function writeValidationFiles(
  validation: Document<Validation>,
  time: Date,
  folder: string,
): Promise<ReportFiles> {
  const stamp = stampOf(time);
  const view = await viewOf({ kind: 'validate', document: validation });
  const text = stripVTControlCharacters(terminalView(view, { width: 100, level: 2 }));
  const [summary, csv, html] = claimNames(resultsFolder(folder), [
    `batch-summary-${stamp}.txt`,
    `validation-${stamp}.csv`,
    `validation-${stamp}.html`,
  ]).map((name) => join(folder, name)) as [string, string, string];
  const files = { summary, csv, html };
  await writeResult(files.summary, `${text}\n`);
  await writeResult(files.csv, validateCsv(validation.data));
  await writePage(files.html, (parts) => pageOfView(view, parts));
  return files;
}

/** The trend over all validate sessions, oldest first. @throws E_USAGE without any */
export async function validationHistory(): Promise<Document<ValidationHistory>> {
  const ids = listSessions()
    .filter(({ kind, broken }) => kind === 'validate' && broken === null)
    .map(({ id }) => id);
  if (ids.length === 0) {
    throw new InferscopeError('E_USAGE', {
      what: 'there is no validate session yet',
      why: 'The trend covers saved validate sessions.',
      fix: 'inferscope validate results/memory-profiles',
    });
  }
  return historyDocument(await Promise.all(ids.map((id) => openSession(id))));
}
