import { createReadStream, createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { redactJson } from '../model/redaction.js';
import type { TableSink } from '../model/tables.js';

export type Redact = (text: string) => string;

/** Cache size: texts repeat between rows. */
const maxRemembered = 50_000;

/** A sink that removes secrets from all text of its rows. */
export function redactingSink(sink: TableSink, redact: Redact): TableSink {
  const known = new Map<string, string>();
  const clean = (text: string) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    if (known.size >= maxRemembered) known.clear();
    const after = redact(text);
    known.set(text, after);
    return after;
  };
  return {
    append(table, row) {
      let changed: Record<string, unknown> | null = null;
      for (const [column, value] of Object.entries(row)) {
        if (typeof value !== 'string') continue;
        const after = clean(value);
        if (after !== value) (changed ??= { ...row })[column] = after;
      }
      sink.append(table, (changed ?? row) as typeof row);
    },
  };
}

/** Copies a record (JSON lines) without secrets. @returns its path */
export async function redactedRecord(path: string, folder: string, redact: Redact): Promise<string> {
  const copy = join(folder, 'redacted-record.jsonl');
  const lines = createInterface({ input: createReadStream(path, 'utf8'), crlfDelay: Infinity });
  async function* cleaned() {
    for await (const line of lines) yield `${redactedLine(line, redact)}\n`;
  }
  await pipeline(Readable.from(cleaned()), createWriteStream(copy));
  return copy;
}

/** The last line of a killed process may be incomplete JSON. */
function redactedLine(line: string, redact: Redact): string {
  try {
    return JSON.stringify(redactJson(JSON.parse(line), redact));
  } catch {
    return redact(line);
  }
}
