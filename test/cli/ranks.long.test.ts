import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { writeKinetoRanks } from '../../src/record/ranks/test-ranks.js';
import { openSession } from '../../src/session/open.js';
import { expectFailure, inferscope, createSetup, listSessions, startCli } from './run-cli.js';

const setup = createSetup();
vi.stubEnv('INFERSCOPE_HOME', setup.home);

test('each rank is imported by a separate process; a damaged one is reported, and the others become one session', async () => {
  const folder = join(setup.scratch, 'four');
  writeKinetoRanks(folder, { seed: 1, ranks: 4, steps: 4, truncated: [2] });
  const result = inferscope(setup, ['import', `${folder}/**`, '--ranks', '--name', 'four', '--no-analyze']);
  expect(result.status, result.stderr).toBe(0);
  const { manifest, issues } = await openSession('four');
  expect(manifest.captures.map(({ capture_id }) => capture_id)).toEqual(['rank-0', 'rank-1', 'rank-3']);
  expect(manifest.title).toMatch(/^3 ranks · torch\.profiler · NVIDIA H100/);
  expect(issues.find(({ code }) => code === 'rank_unreadable')?.text).toMatch(
    /^Rank 2: trace_rank0002.* cut off/,
  );
  expectFailure(inferscope(setup, ['import', folder, '--resume', '--json']), 2, 'E_USAGE');
  expectFailure(
    inferscope(setup, ['import', folder, '--ranks', '--session', 'four', '--json']),
    2,
    'E_USAGE',
  );
});

test('Ctrl-C stops the processes and keeps finished ranks; --resume imports the rest', async () => {
  const folder = join(setup.scratch, 'many');
  writeKinetoRanks(folder, { seed: 2, ranks: 12, steps: 2 });
  const sessionCount = listSessions(setup).length;
  const args = ['import', folder, '--ranks', '--no-analyze', '--jobs', '1'];
  const ranks = join(setup.home, 'cache', 'ranks');
  // The first test leaves the files of an import that can be resumed.
  const before = readdirSync(ranks);
  const running = startCli(setup, args);
  const countImported = () => {
    const importFolder = readdirSync(ranks).find((name) => !before.includes(name));
    const journal = join(ranks, importFolder ?? '', 'journal.json');
    if (importFolder === undefined || !existsSync(journal)) return 0;
    const tasks = JSON.parse(readFileSync(journal, 'utf8')) as { outcome: string }[];
    return tasks.filter(({ outcome }) => outcome === 'imported').length;
  };
  while (countImported() < 2) await sleep(20);
  running.child.kill('SIGINT');
  const { status, stderr } = await running.exit;
  expect(status).toBe(130);
  expect(stderr).toMatch(/stopped after \d+ of 12 files[\s\S]*--ranks --resume/);
  expect(listSessions(setup)).toHaveLength(sessionCount);
  expect(countImported()).toBeGreaterThanOrEqual(2);
  expect(inferscope(setup, [...args, '--resume']).status).toBe(0);
  expect((await openSession('@last')).manifest.captures).toHaveLength(12);
});
