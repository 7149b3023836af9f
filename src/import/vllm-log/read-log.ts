import { unreadableFile } from '../trace-file-error.js';
import { interrupted } from '../interrupted.js';
import { createReadStream } from 'node:fs';
import { messageOf } from '../../model/errors.js';
import { withoutColors, type LogLine } from './lines.js';
import { logClock, serverStats, type ServerStats } from './server-stats.js';

/**
 * Text that a line must contain for any pattern to match: server logs have millions of other lines, which also name tokens,
 * seconds and blocks.
 */
const relevantText =
  /\d ?Gi?B\b|LLM engine|\bargs: |Namespace\(|API server version|# \w+ blocks: |num_gpu_blocks is: |GPU KV cache size|batched_tokens=\d|tokens per request|block size to|max model len|KV cache|OutOfMemoryError|gpu_memory_utilization|gpu-memory-utilization|init engine/;

/** A log without irrelevant lines. */
export interface ReadLog {
  lines: LogLine[];
  /** Seconds since the first time of the log, by line number; for `lines` only. */
  seconds: Map<number, number>;
  stats: (ServerStats & { seconds: number })[];
}

/** @throws E_TRACE_FILE, E_INTERRUPTED */
export async function readLog(path: string, signal?: AbortSignal): Promise<ReadLog> {
  const log: ReadLog = { lines: [], seconds: new Map(), stats: [] };
  const clock = logClock();
  let number = 0;
  let partialLine = '';
  const readLine = (raw: string) => {
    number++;
    const line = { text: withoutColors(raw), number };
    const seconds = clock(line);
    const reported = serverStats(line);
    if (reported) log.stats.push({ ...reported, seconds });
    else if (relevantText.test(line.text)) {
      log.lines.push(line);
      log.seconds.set(number, seconds);
    }
  };
  try {
    for await (const chunk of createReadStream(path, { encoding: 'utf8', ...(signal ? { signal } : {}) })) {
      const parts = (partialLine + String(chunk)).split(/\r\n|\n|\r(?!$)/);
      partialLine = parts.pop()!;
      for (const part of parts) readLine(part);
    }
  } catch (error) {
    if (signal?.aborted) throw interrupted(`the import of ${path}`);
    throw unreadableFile(null, 'Check the path and its permissions.')(path, messageOf(error), error);
  }
  if (partialLine !== '') readLine(partialLine);
  return log;
}
