import { readLines } from '../interrupted.js';
import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';
import { unreadableFile } from '../trace-file-error.js';
import { messageOf } from '../../model/errors.js';
import { type JsonObject, objectOf } from './metric-list.js';
import { formatBytes } from '../../vocabulary/format.js';

/** V8's maximum string length is 2^29 − 24 characters. */
const maxFileBytes = 500 * 2 ** 20;

export const unreadable = unreadableFile(
  'benchmark result',
  'Give the file as the benchmark wrote it; docs/reference/capture-formats.md lists the flag of each tool.',
);

/**
 * The objects of a result file: one object, an array, or one per line (files that runs append to).
 * @throws E_TRACE_FILE if it is truncated, too large or contains something else
 */
export async function readObjects(path: string): Promise<JsonObject[]> {
  return objectsOf(await readText(path), path);
}

/**
 * The object of a format with one per file.
 * @throws E_TRACE_FILE, also if there are several
 */
export async function readObject(path: string): Promise<JsonObject> {
  const [first, ...more] = await readObjects(path);
  if (more.length > 0)
    throw unreadable(path, `It contains ${more.length + 1} results, but this benchmark writes one per file.`);
  return first!;
}

/** @throws E_TRACE_FILE if it is too large */
export async function readText(path: string): Promise<string> {
  const { size } = await stat(path);
  if (size > maxFileBytes) {
    throw unreadable(
      path,
      `It has ${formatBytes(size)}; the limit is ${formatBytes(maxFileBytes)}. Write it without generated texts, or split its lines.`,
    );
  }
  return readFile(path, 'utf8');
}

export function objectsOf(text: string, path: string): JsonObject[] {
  let parsed: unknown;
  try {
    parsed = parseLenient(text);
  } catch (error) {
    return linesOf(text, path, error);
  }
  const objects = (Array.isArray(parsed) ? parsed : [parsed]).map(objectOf);
  if (objects.length === 0 || objects.some((object) => object === null))
    throw unreadable(path, 'It contains no JSON objects.');
  return objects as JsonObject[];
}

function linesOf(text: string, path: string, cause: unknown): JsonObject[] {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines.map((line, index) => {
    try {
      const object = objectOf(parseLenient(line));
      if (object) return object;
    } catch (error) {
      if (index > 0) throw unreadable(path, `Line ${index + 1} is not JSON: ${messageOf(error)}`, error);
    }
    throw unreadable(path, `It is not JSON; it may be cut off: ${messageOf(cause)}`, cause);
  });
}

/**
 * JSON as Python's `json.dumps` writes it: numbers may be bare Infinity and NaN. Infinity becomes the text "inf",
 * which vLLM writes itself; NaN, a missing number, becomes null.
 */
export function parseLenient(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (!/\b(?:Infinity|NaN)\b/.test(text)) throw error;
    // Strings are matched too, so that a model named "Infinity" is not changed.
    const plain = text.replaceAll(/"[^"\\]*(?:\\.[^"\\]*)*"|-?Infinity|NaN/gs, (token) => {
      if (token.startsWith('"')) return token;
      return token === 'NaN' ? 'null' : '"inf"';
    });
    return JSON.parse(plain) as unknown;
  }
}

/** Non-empty lines of a JSON Lines file, with line numbers from 1. */
export async function* readTextLines(
  path: string,
  signal?: AbortSignal,
): AsyncGenerator<{ text: string; line: number }> {
  const bytes = createReadStream(path);
  const input = path.endsWith('.gz') ? bytes.pipe(createGunzip()) : bytes;
  let line = 0;
  for await (const text of readLines(path, signal, input)) {
    line++;
    if (text.trim() !== '') yield { text, line };
  }
}
