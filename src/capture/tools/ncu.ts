import { createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { execa } from 'execa';
import { endWithParent } from '../../model/end-with-parent.js';
import { InferscopeError, messageOf } from '../../model/errors.js';
import type { ToolFacts } from '../doctor/facts.js';
import { findNcu } from './nsight.js';

const exportMs = 30 * 60_000;
const versionMs = 10_000;

/**
 * @param without what to do without ncu
 * @throws E_TOOL_MISSING
 */
export async function requireNcu(
  purpose: string,
  without = '--evaluator nsys or torch.',
): Promise<ToolFacts> {
  const ncu = await findNcu(versionMs);
  if (ncu) return ncu;
  throw new InferscopeError('E_TOOL_MISSING', {
    what: `ncu, which is needed to ${purpose}, was not found`,
    why: 'It is neither on PATH nor in the usual folders (/opt/nvidia/nsight-compute, /usr/local/cuda).',
    fix: `Install NVIDIA Nsight Compute and type: inferscope doctor\nWithout it: ${without}`,
  });
}

/**
 * Prints a report's pages as CSV: `raw` has every metric of every kernel, `details` the sections with NVIDIA's own
 * rules. Units are as ncu scales them (`--print-units base` would round).
 * @param folder an existing folder to write into
 * @throws E_TOOL_MISSING, E_TOOL_FAILED
 */
export async function exportNcuReport(
  report: string,
  folder: string,
): Promise<{ raw: string; details: string | null }> {
  const ncu = await requireNcu(
    `read ${basename(report)}`,
    `ncu -i ${basename(report)} --csv --page raw > raw.csv where it was recorded, then import raw.csv.`,
  );
  const raw = await printPage(ncu, report, 'raw', folder);
  // No metric is only on this page: its failure loses the rule texts, not the import.
  const details = await printPage(ncu, report, 'details', folder).catch(() => null);
  return { raw, details };
}

async function printPage(ncu: ToolFacts, report: string, page: string, folder: string): Promise<string> {
  const path = join(folder, `${basename(report).replace(/\.ncu-rep$/, '')}.${page}.csv`);
  const child = endWithParent((mark) =>
    execa(ncu.path, ['-i', report, '--csv', '--page', page], {
      stdin: 'ignore',
      env: mark,
      buffer: { stdout: false, stderr: true },
      timeout: exportMs,
    }),
  );
  try {
    await Promise.all([pipeline(child.stdout, createWriteStream(path)), child]);
    if ((await stat(path)).size > 0) return path;
  } catch (error) {
    throw printFailure(report, ncu, messageOf(error), error);
  }
  throw printFailure(report, ncu, 'it printed nothing', null);
}

function printFailure(report: string, ncu: ToolFacts, output: string, cause: unknown): InferscopeError {
  const line = output.split('\n').find((text) => /==ERROR==|error/i.test(text)) ?? output.split('\n')[0]!;
  return new InferscopeError(
    'E_TOOL_FAILED',
    {
      what: `ncu could not print ${basename(report)}`,
      why: `ncu ${ncu.version ?? ''} reported: ${line.trim()}. The report may come from a newer ncu, or be cut off.`,
      fix: `Run it by hand: ncu -i ${basename(report)} --csv --page raw`,
    },
    { cause },
  );
}
