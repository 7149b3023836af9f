import { stat } from 'node:fs/promises';
import type { ImportTarget } from '../../model/workbench.js';
import type { CaptureFacts, ImportContext, Importer, ImportOutcome } from '../importer.js';
import { withoutImpossible } from './impossible.js';
import { withoutRepeated } from './repeated.js';
import type { ResultFile } from './result-file.js';

interface ResultsFormat {
  name: string;
  sniff(firstBytes: string, fileName: string): boolean;
  /** @throws E_TRACE_FILE */
  read(path: string, signal?: AbortSignal): Promise<ResultFile>;
}

/**
 * An importer for the results of another benchmark tool: metrics with their definitions, and rows if the tool saved
 * them.
 */
export function resultsImporter({ name, sniff, read }: ResultsFormat): Importer {
  // Facts and load read the same file in sequence, so it is parsed once for both.
  let lastRead: { key: string; file: ResultFile } | null = null;
  const readOnce = async (path: string, signal?: AbortSignal): Promise<ResultFile> => {
    const { size, mtimeMs } = await stat(path);
    const key = `${path}\n${size}\n${mtimeMs}`;
    if (lastRead?.key !== key)
      lastRead = { key, file: withoutRepeated(withoutImpossible(await read(path, signal))) };
    return lastRead.file;
  };
  return {
    name,
    sniff,
    async facts(path): Promise<CaptureFacts> {
      const { tool, realtime_zero_ns, hardware, software } = await readOnce(path);
      return { tool, realtime_zero_ns, command: null, hardware, software, purpose: 'results' };
    },
    async load(path, { sink }: Pick<ImportTarget, 'sink'>, context: ImportContext): Promise<ImportOutcome> {
      const file = await readOnce(path, context.signal);
      lastRead = null;
      const { execution_id, capture_id, host } = context;
      const keys = { execution_id, capture_id, host, rank: 0 };
      const zero = context.zero.realtime_ns;
      const shift =
        zero === null || file.realtime_zero_ns === null ? 0 : Number(file.realtime_zero_ns - zero);
      const toSessionTime = (time: number | null | undefined) =>
        typeof time === 'number' ? time + shift : null;
      const redact = context.redact ?? ((text: string) => text);
      for (const [point, { label, metrics, requests, iterations }] of file.points.entries()) {
        for (const metric of metrics) sink.append('metrics', { ...keys, point, label, ...metric });
        for (const row of requests) {
          sink.append('requests', {
            ...keys,
            ...row,
            sent_ns: toSessionTime(row.sent_ns),
            first_token_ns: toSessionTime(row.first_token_ns),
            end_ns: toSessionTime(row.end_ns),
            error: typeof row.error === 'string' ? redact(row.error) : null,
          });
        }
        for (const row of iterations) {
          sink.append('iterations', {
            ...keys,
            ...row,
            start_ns: toSessionTime(row.start_ns),
            end_ns: toSessionTime(row.end_ns),
          });
        }
      }
      return { clock: file.clock, issues: file.issues };
    },
  };
}
