import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test, vi } from 'vitest';
import { writeKinetoRanks } from '../../src/record/ranks/test-ranks.js';
import { openSession } from '../../src/session/open.js';
import { expectFailure, inferscope, place, sessions, start } from './profile-cli.js';

const setup = place();
afterAll(() => rmSync(setup.scratch, { recursive: true, force: true }));
vi.stubEnv('INFERSCOPE_HOME', setup.home);

test('separate processes import each rank; a damaged one is reported, the rest becomes one session', async () => {
  const folder = join(setup.scratch, 'four');
  writeKinetoRanks(folder, { seed: 1, ranks: 4, steps: 4, truncated: [2] });
  const ran = inferscope(setup, ['import', `${folder}/**`, '--ranks', '--name', 'four', '--no-analyze']);
  expect(ran.status, ran.stderr).toBe(0);
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
  const saved = sessions(setup).length;
  const args = ['import', folder, '--ranks', '--no-analyze', '--jobs', '1'];
  const ranks = join(setup.home, 'cache', 'ranks');
  // The first test leaves the files of an import that can be resumed.
  const before = readdirSync(ranks);
  const running = start(setup, args);
  const done = () => {
    const work = readdirSync(ranks).find((name) => !before.includes(name));
    const journal = join(ranks, work ?? '', 'journal.json');
    if (work === undefined || !existsSync(journal)) return 0;
    const tasks = JSON.parse(readFileSync(journal, 'utf8')) as { outcome: string }[];
    return tasks.filter(({ outcome }) => outcome === 'imported').length;
  };
  while (done() < 2) await sleep(20);
  running.child.kill('SIGINT');
  const { status, stderr } = await running.ended;
  expect(status).toBe(130);
  expect(stderr).toMatch(/stopped after \d+ of 12 files[\s\S]*--ranks --resume/);
  expect(sessions(setup)).toHaveLength(saved);
  expect(done()).toBeGreaterThanOrEqual(2);
  expect(inferscope(setup, [...args, '--resume']).status).toBe(0);
  expect((await openSession('@last')).manifest.captures).toHaveLength(12);
});
