import { readFile } from 'node:fs/promises';
import { childEntry } from '../model/installation.js';

/** Scripts of a page with charts, and of one without. */
export async function reportScripts(): Promise<{ clientScript: string; readingScript: string }> {
  const text = (entry: string) => readFile(childEntry(entry), 'utf8');
  return { clientScript: await text('report-client'), readingScript: await text('report-reading') };
}
