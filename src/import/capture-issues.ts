import type { Issue } from '../model/document.js';
import { sentence, quantity } from '../vocabulary/sentence-template.js';

// Issues of several readers, worded once.

export function namesMissing(count: number): Issue[] {
  if (count === 0) return [];
  const text = sentence`${count} kernels, API calls or ranges have no name in the file; they are shown as "(no name)".`;
  return [{ code: 'names_missing', severity: 'warning', ...text, count }];
}

export function copyBytesImpossible(count: number): Issue[] {
  if (count === 0) return [];
  const text = sentence`${count} copies have an invalid size; their sizes were dropped.`;
  return [{ code: 'copy_bytes_impossible', severity: 'warning', ...text, count }];
}

/** @param count bytes after the end that the file declares */
export function trailingBytes(count: number): Issue {
  const text = sentence`The capture ends ${quantity(count, 'B')} before the end of the file; the rest was not read. The file may contain two captures or be a damaged copy.`;
  return { code: 'trailing_bytes', severity: 'warning', ...text, count };
}
