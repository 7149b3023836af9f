import type { Issue } from '../model/document.js';
import { InferscopeError } from '../model/errors.js';
import { printDocument } from './output.js';

export interface JsonOption {
  json?: boolean;
}

export const jsonOption = ['--json', 'print one JSON document on stdout'] as const;
export const selectorHelp = 'id prefix, name, @last or @last~1';

/** Loads zod only for JSON output. */
export async function printSessionDocument(
  name: string,
  data: unknown,
  issues: Issue[] = [],
  version = '1.0',
): Promise<void> {
  const { document } = await import('../model/document.js');
  printDocument(document(name, version, data, issues));
}

export const sessionUsageError = (what: string, why: string, fix: string): InferscopeError =>
  new InferscopeError('E_USAGE', { what, why, fix });
