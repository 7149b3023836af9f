import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { analyzeAndExplain } from '../advice/explain/session-explanation.js';
import { textWidth } from '../render/terminal/text.js';
import { importSession } from '../session/archive-import.js';
import { openSession } from '../session/open.js';
import { testHome } from '../session/test-folder.js';
import { summaryText, withReportPath } from './session-summary.js';

const home = testHome();

/**
 * A run, a load test, memory that fits, memory that does not fit, memory of two GPUs, a recording of a machine, two ranks, requests with
 * pauses.
 */
const archives = [
  'vllm-0.26-h200/run-in-process.tgz',
  'vllm-0.26-h200/bench-serve.tgz',
  'memory-torch2.11-h200/llama-2-7b.tgz',
  'memory-torch2.11-h200/llama-3.1-8b-out-of-memory.tgz',
  'memory-torch2.11-h200/llama-3.1-8b-two-gpus.tgz',
  'monitor-0.1-h200/session.tar.gz',
  'diagnosis/straggler-fault.tgz',
  'diagnosis/idle_between_requests-fault.tgz',
];

test.each(archives)(
  'the summary of %s fits 30 lines at 80 columns, without the table of loads',
  async (path) => {
    const { id } = await importSession(`test/fixtures/${path}`, home);
    const session = await openSession(id, home);
    const { analyzed, explain } = await analyzeAndExplain(session);
    const text = withReportPath(await summaryText(analyzed, id, explain), 'report.html');
    const lines = stripVTControlCharacters(text).split('\n');
    // A load test's table is what the user asked for, so it is not shortened.
    const table = lines.indexOf('  Loads');
    expect(table >= 0).toBe(path.includes('bench-serve'));
    expect(table < 0 ? lines.length : table).toBeLessThanOrEqual(30);
    expect(lines.filter((line) => textWidth(line) > 80)).toEqual([]);
  },
);
