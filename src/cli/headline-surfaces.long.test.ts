import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { explainSession } from '../advice/explain/explain.js';
import { headlineOf } from '../advice/explain/headline.js';
import { gap, kernel, sessionOf as traceSessionOf, stage } from '../facts/trace/test-hand.js';
import { analyzeCaptures } from '../facts/captures.js';
import { compareSessions } from '../compare/sessions/compare.js';
import { analyzeUtilization as utilizationOf } from '../facts/utilization/utilization.js';
import { compareExplanations } from '../advice/verify/verify.js';
import { whatIf } from '../advice/what-if/what-if.js';
import { storedAnswer } from '../ask/stored/stored-answer.js';
import { busyMs, explainedBars, headlineTime, idleIn, phaseTime } from '../model/headline-time.js';
import { pageOfView } from '../render/html/view.js';
import { markdownView } from '../render/markdown.js';
import { terminalView } from '../render/terminal/view.js';
import { importSession } from '../session/archive-import.js';
import { openSession, type Session } from '../session/open.js';
import { capturesView } from '../views/captures.js';
import { compareView } from '../views/compare.js';
import { explainView } from '../views/explain.js';
import { utilizationView } from '../views/utilization.js';

const step = stage(1, 'decode', 0, 100, { step_index: 0 });
const clean = {
  ...stage(1, 'decode', 1000, 1060, { step_index: 0 }),
  execution_id: 'clean',
  capture_id: 'clean-record',
};
const rows = {
  kernels: [kernel(1, 0, 30), kernel(1, 90, 10)],
  gaps: [{ ...gap(30, { host: 55, launch_overhead: 5 }), stage_id: 1 }],
};

/** Each surface's first time of the decode step, µs. */
async function surfaces(session: Awaited<ReturnType<typeof traceSessionOf>>) {
  const explain = await explainSession(session);
  const view = explainView(explain);
  const [waterfall] = explain.data.stages;
  const first = (text: string, pattern: RegExp): number => {
    const [, value, unit] = pattern.exec(text.replaceAll('\u00a0', ' ')) ?? [];
    return Number(value) * (unit === 'ms' ? 1000 : 1);
  };
  const time = String.raw`([\d.]+) (µs|ms)`;
  const html = pageOfView(view, { clientScript: '' })
    .replaceAll(/<[^>]+>|&nbsp;/g, ' ')
    .replaceAll(/\s+/g, ' ');
  return {
    waterfall: waterfall!,
    timesUs: {
      document: 1000 * (headlineTime(waterfall!).value ?? 0),
      sentence: first(explain.data.sentences[0]!, new RegExp(`takes ${time}`)),
      list: first(headlineOf(explain.data)!.text, new RegExp(`decode ${time}`)),
      terminal: first(
        stripVTControlCharacters(terminalView(view, { width: 120, level: 2 })),
        new RegExp(`^ {2}Decode step: ${time}`, 'm'),
      ),
      markdown: first(markdownView(view), new RegExp(`### Decode step: ${time}`)),
      page: first(html, new RegExp(`Decode step: ${time}`)),
    },
    texts: { sentence: explain.data.sentences[0]!, terminal: terminalView(view, { width: 120, level: 2 }) },
  };
}

test('every surface leads with the time without the profiler, and shares are of that time', async () => {
  const session = await traceSessionOf({ stages: [step, clean], ...rows }, { clean: 'clean' });
  const { waterfall, timesUs: shown, texts } = await surfaces(session);
  for (const [surface, us] of Object.entries(shown)) expect(us, surface).toBeCloseTo(60, 0);
  const { bars, profiler, ms } = explainedBars(waterfall.bars);
  // 100 µs under the profiler, 60 without: 40 added, taken out of the host's 55.
  expect(profiler!.ms).toBeCloseTo(0.04, 9);
  expect(ms).toBeCloseTo(0.06, 9);
  expect(bars.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1, 9);
  expect(bars.find(({ id }) => id.startsWith('host'))!.share).toBeCloseTo(15 / 60, 6);
  expect(texts.sentence).toContain('0.100 ms under the profiler');
  expect(texts.terminal.replaceAll('\u00a0', ' ')).toMatch(
    /measured +60\.0 µs\n +added by the profiler +40\.0 µs\n +under the profiler +100\.0 µs/,
  );
});

test('without a clean execution the first sentence says that the time is under the profiler', async () => {
  const session = await traceSessionOf({ stages: [step], ...rows });
  const { timesUs: shown, waterfall, texts } = await surfaces(session);
  for (const [surface, us] of Object.entries(shown)) expect(us, surface).toBeCloseTo(100, 0);
  expect(explainedBars(waterfall.bars).profiler).toBeNull();
  expect(texts.sentence).toMatch(/takes 0\.100 ms under the profiler/);
  const utilization = await utilizationOf(session);
  expect(utilization.data.stages).toMatchObject([
    { kind: 'decode', profiled: true, time_ms: { value: 0.1 } },
  ]);
  expect(terminalView(utilizationView(utilization, false), { width: 80 })).toContain('under the profiler');
});

describe('a real clean and nsys pair: eager decode on an H200', () => {
  const root = mkdtempSync(join(tmpdir(), 'inferscope-headline-'));
  const home = { root, sessions: join(root, 'sessions'), cache: join(root, 'cache') };
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  let session: Session;
  let otherSession: Session;
  let explain: Awaited<ReturnType<typeof explainSession>>;
  /** By SQL over the tables: mean step without a profiler, and the device's work in a step under it. */
  let clean_ms: number;
  let busy_ms: number;

  const fixtureArchive = (name: string) => `test/fixtures/diagnosis/${name}.tgz`;
  const plain = (text: string) => stripVTControlCharacters(text).replaceAll(/\u00a0|&nbsp;/g, ' ');

  beforeAll(async () => {
    const { id } = await importSession(fixtureArchive('launch_bound_decode-fault'), home);
    session = await openSession(id, home);
    otherSession = await openSession(
      (await importSession(fixtureArchive('sync_every_layer-fault'), home)).id,
      home,
    );
    explain = await explainSession(session);
    const database = await session.connect();
    const [row] = await database.query<{ clean_ms: number; busy_ms: number }>(
      `SELECT (SELECT avg(end_ns - start_ns) / 1e6 FROM stages WHERE execution_id = 'inferscope' AND kind = 'decode') AS clean_ms,
         (SELECT sum(exclusive_ns) / 1e6 FROM (FROM (SELECT exclusive_ns FROM kernels) UNION ALL SELECT exclusive_ns FROM copies)) / (SELECT count(*) FROM stages WHERE execution_id = 'nsys' AND kind = 'decode') AS busy_ms`,
    );
    ({ clean_ms, busy_ms } = row!);
    await database.close();
  }, 60_000);

  test('one time on all surfaces', async () => {
    const captures = await analyzeCaptures(session);
    const { trace } = captures;
    const view = capturesView(captures);
    const compared = await compareSessions([session, otherSession]);
    const page = pageOfView(view, { clientScript: '', explain });
    const { data: predicted } = await whatIf(session, ['no-sync']);
    const verdict = compareExplanations(explain.data, explain.data, { before: 1, after: 1 });
    const { stages } = (await utilizationOf(session)).data;
    const times = {
      document: headlineTime(explain.data.stages[0]!).value,
      bars: explainedBars(explain.data.stages[0]!.bars).ms,
      phase: phaseTime(trace!.data.phases[0]!).ms,
      compare: compared.data.stages[0]!.values[0]!.duration_ms.value,
      what_if: predicted.stages[0]!.before_ms.value,
      verify: verdict.stages[0]!.before_ms.value,
      utilization: stages.find(({ profiled }) => !profiled)!.time_ms.value,
    };
    for (const [surface, ms] of Object.entries(times)) expect(ms, surface).toBeCloseTo(clean_ms, 6);
    const answer = await storedAnswer(session, 'How long does a decode step take?');
    const texts = {
      sentence: [explain.data.sentences[0]!, /takes ([\d.]+) ms/],
      list: [headlineOf(explain.data)!.text, /decode ([\d.]+) ms/],
      summary: [terminalView(view, { width: 120, level: 2 }), /^ +decode step +6 +([\d.]+) ms/m],
      headline: [page, /class="headline".*?decode.*?([\d.]+) ms/s],
      compare: [terminalView(compareView(compared), { width: 80, level: 2 }), /^ +Decode step: ([\d.]+) ms/m],
      analyze: [answer.answer, /takes ([\d.]+) ms/],
    } satisfies Record<string, [string, RegExp]>;
    for (const [surface, [text, time]] of Object.entries(texts))
      expect(time.exec(plain(text))?.[1], `${surface}: ${plain(text)}`).toBe(clean_ms.toFixed(2));
  });

  test('one idle share on all surfaces', async () => {
    const captures = await analyzeCaptures(session);
    const { trace } = captures;
    const [phase] = trace!.data.phases;
    const idle = 1 - busy_ms / clean_ms;
    expect(phase!.idle_share).toBeCloseTo(idle, 4);
    expect(phase!.idle_by_cause.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(idle, 4);
    const [stage] = explain.data.stages;
    expect(idleIn(headlineTime(stage!).value!, busyMs(stage!)).share).toBeCloseTo(idle, 4);
    const compared = await compareSessions([session, otherSession]);
    expect(compared.data.stages[0]!.values[0]!.idle_share).toBeCloseTo(idle, 4);
    const percent = Math.round(100 * idle).toString();
    const page = pageOfView(capturesView(captures), { clientScript: '', explain });
    const answer = await storedAnswer(session, 'Is the GPU idle?');
    const texts = {
      headline: [page, /class="headline".*?GPU idle (\d+)(?:\.\d)? %/s],
      compare: [terminalView(compareView(compared), { width: 80 }), /idle (\d+) % →/],
      analyze: [answer.answer, /idle for (\d+) %/],
    } satisfies Record<string, [string, RegExp]>;
    for (const [surface, [text, share]] of Object.entries(texts))
      expect(share.exec(plain(text))?.[1], `${surface}: ${plain(text)}`).toBe(percent);
  });

  test('shares, gains and texts of findings refer to the time without the profiler', () => {
    const [first] = explain.data.findings;
    expect(first!.id).toBe('launch_bound:decode');
    expect(first!.at_stake_ms! / first!.at_stake_share!).toBeCloseTo(clean_ms, 6);
    expect(first!.gain!.after_ms + first!.gain!.expected_ms).toBeCloseTo(clean_ms, 2);
    expect(first!.title).toContain(
      `the device waits ${Math.round(100 * first!.at_stake_share!)} % of every decode step`,
    );
    expect(first!.cause).toContain(`takes ${clean_ms.toFixed(2)} ms, its kernels ${busy_ms.toFixed(2)} ms`);
  });
});
