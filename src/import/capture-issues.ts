import type { Issue } from '../model/document.js';
import { said } from '../model/said.js';

// What readers of several formats find, worded once.

export function namesMissing(count: number): Issue[] {
  if (count === 0) return [];
  const text = said`${count} kernels, API calls or ranges have no name that the file holds; they are called "(no name)".`;
  return [{ code: 'names_missing', severity: 'warning', ...text, count }];
}

export function copyBytesImpossible(count: number): Issue[] {
  if (count === 0) return [];
  const text = said`${count} copies are of a size that cannot be; their sizes are left out.`;
  return [{ code: 'copy_bytes_impossible', severity: 'warning', ...text, count }];
}

/** @param count bytes after the end of what the file says it holds */
export function trailingBytes(count: number): Issue {
  const text = said`The capture ends ${count} bytes before its file does: what follows was not read. Two captures in one file, or a damaged copy?`;
  return { code: 'trailing_bytes', severity: 'warning', ...text, count };
}
