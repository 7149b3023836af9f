import {
  closeSync,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  createReadStream,
} from 'node:fs';
import { createInterface } from 'node:readline';

/**
 * A process killed during a write leaves a partial line, which the next process would join with its own first line: it is
 * removed.
 */
export function dropCutOffLine(path: string): void {
  if (!existsSync(path)) return;
  const file = openSync(path, 'r+');
  try {
    const buffer = Buffer.alloc(64 * 1024);
    let end = fstatSync(file).size;
    while (end > 0) {
      const from = Math.max(0, end - buffer.length);
      const read = readSync(file, buffer, 0, end - from, from);
      const newline = buffer.subarray(0, read).lastIndexOf(10);
      if (newline >= 0) {
        ftruncateSync(file, from + newline + 1);
        return;
      }
      end = from;
    }
    ftruncateSync(file, 0);
  } finally {
    closeSync(file);
  }
}

export interface RecordedFacts {
  /** Timed repeats over all points. */
  timed: number;
  /** Highest iteration that was recorded; -1 without one. */
  lastIteration: number;
  outOfMemory: Set<string>;
  /** All points with another outcome than measured. */
  unmeasured: { point: string; outcome: string; text: string | null }[];
}

/** State of a benchmark from its record; unreadable lines are left to the importer. */
export async function readRecordedFacts(path: string): Promise<RecordedFacts> {
  const facts: RecordedFacts = { timed: 0, lastIteration: -1, outOfMemory: new Set(), unmeasured: [] };
  if (!existsSync(path)) return facts;
  for await (const text of createInterface({ input: createReadStream(path, 'utf8'), crlfDelay: Infinity })) {
    if (!text.includes('"request"') && !text.includes('"point"')) continue;
    let line: Record<string, unknown>;
    try {
      line = JSON.parse(text) as Record<string, unknown>;
    } catch {
      continue;
    }
    if (line['type'] === 'request') {
      if (line['warmup'] === false) facts.timed++;
      facts.lastIteration = Math.max(facts.lastIteration, Number(line['iteration']));
    } else if (line['type'] === 'point' && line['outcome'] !== 'measured') {
      const point = String(line['point']);
      const words = line['text'];
      if (line['outcome'] === 'out_of_memory') facts.outOfMemory.add(point);
      facts.unmeasured.push({
        point,
        outcome: String(line['outcome']),
        text: typeof words === 'string' ? words : null,
      });
    }
  }
  return facts;
}
