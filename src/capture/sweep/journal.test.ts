import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { expect, test } from 'vitest';
import type { SweepRun } from '../../model/documents/sweep.js';
import { testFolder } from '../../session/test-folder.js';
import {
  discardUnstarted,
  needsRun,
  journalsIn,
  mergePlan,
  readJournal,
  refuseRunning,
  writeJournal,
  type Journal,
} from './journal.js';
import { pendingRun, type PlannedRun } from './plan.js';

const planned = (batch: number): PlannedRun => ({
  arguments: ['estimate', '--batch-size', String(batch)],
  label: `batch ${batch}`,
  model: 'm',
  parameters: { batch_size: batch },
  writes: 'profile',
});

function journalOf(folder: string, batches: readonly number[]): Journal {
  const stamp = '20261121-134502';
  return {
    path: join(folder, `sweep-${stamp}.json`),
    folder,
    sweep: {
      name: null,
      stamp,
      kind: 'memory',
      status: 'running',
      started_at: '2026-11-21T13:45:02Z',
      ended_at: null,
      command: ['inferscope', 'sweep'],
      working_directory: folder,
      varied: ['batch_size'],
      config: null,
      protocol: { timeout_s: 60, retries: 1, min_free_bytes: 0 },
      process: null,
      runs: batches.map((batch, i) => pendingRun(planned(batch), { number: i + 1, stamp, folder })),
    },
  };
}

test('a sweep is discarded only if none of its runs started or was submitted', () => {
  const folder = testFolder();
  const journal = journalOf(folder, [1, 8]);
  writeJournal(journal);
  const [first] = journal.sweep.runs;
  first!.outcome = 'running';
  first!.job = '7_0';
  discardUnstarted(journal);
  expect(existsSync(journal.path)).toBe(true);
  first!.job = null;
  discardUnstarted(journal);
  expect(readdirSync(folder)).toEqual([]);
});

test('a journal is read as it was written, and is never partially written', () => {
  const folder = testFolder();
  const journal = journalOf(folder, [1, 8]);
  writeJournal(journal);
  expect(readdirSync(folder)).toEqual(['sweep-20261121-134502.json']);
  expect(readJournal(journal.path)).toEqual(journal);
  writeFileSync(join(folder, 'sweep-20261121-134502.csv'), '');
  writeFileSync(join(folder, 'sweep-20261122-000000.json'), '{');
  expect(journalsIn(folder).map((path) => path.slice(-15))).toEqual(['122-000000.json', '121-134502.json']);
  expect(() => readJournal(join(folder, 'sweep-20261122-000000.json'))).toThrow(/is not a sweep journal/);
  expect(journalsIn(join(folder, 'nowhere'))).toEqual([]);
  expect(existsSync(`${journal.path}.tmp`)).toBe(false);
});

test('a changed plan keeps finished runs with numbers and files, and appends the rest', () => {
  const journal = journalOf('/results', [1, 8, 16]);
  const [first, second, third] = journal.sweep.runs as [SweepRun, SweepRun, SweepRun];
  Object.assign(first, { outcome: 'measured', session_id: 'a' });
  Object.assign(second, { outcome: 'measured', session_id: 'b' });
  const merged = mergePlan(journal, {
    kind: 'memory',
    varied: [],
    runs: [planned(1), planned(16), planned(32)],
  });
  expect(merged).toMatchObject({ unchanged: 2, added: 1, gone: 1 });
  expect(merged.runs.map(({ number, label, outcome }) => [number, label, outcome])).toEqual([
    [1, 'batch 1', 'measured'],
    // No longer in the plan, but measured: it stays.
    [2, 'batch 8', 'measured'],
    [3, 'batch 16', 'pending'],
    [4, 'batch 32', 'pending'],
  ]);
  expect(merged.runs[2]).toBe(third);
  expect(merged.runs[3]!.output).toBe('memory-profiles/m-profile_<stamp>.json');
});

test('resume repeats failures of the machine, not of the configuration', () => {
  const failure = { code: 'E', what: '', why: '', fix: '', infrastructure: false };
  expect(needsRun({ outcome: 'measured', failure: null })).toBe(false);
  expect(needsRun({ outcome: 'failed', failure })).toBe(false);
  expect(needsRun({ outcome: 'partial', failure })).toBe(false);
  expect(needsRun({ outcome: 'failed', failure: { ...failure, infrastructure: true } })).toBe(true);
  for (const outcome of ['pending', 'running', 'interrupted', 'not_run'] as const)
    expect(needsRun({ outcome, failure: null })).toBe(true);
});

test('rejects a sweep with a run that is still running', () => {
  const journal = journalOf('/results', [1]);
  const [run] = journal.sweep.runs as [SweepRun];
  journal.sweep.process = { host: hostname(), pid: 2 ** 30 };
  run.pid = 2 ** 30;
  expect(() => refuseRunning(journal, [])).not.toThrow();
  // The test uses its own process as the run: its command line has this word.
  run.pid = process.pid;
  run.arguments = [process.argv[1]!];
  expect(() => refuseRunning(journal, [])).toThrow(/run 1 of .* is still running/);
  journal.sweep.process.host = 'elsewhere';
  expect(() => refuseRunning(journal, [])).not.toThrow();
});
