import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { explainSession } from '../analyze/explain/explain.js';
import { headlineOf } from '../analyze/explain/headline.js';
import { gap, kernel, sessionOf as traceSessionOf, stage } from '../analyze/trace/test-hand.js';
import { explainedBars, headlineTime } from '../model/headline-time.js';
import { explainReport } from '../report/html/explain/page.js';
import { explainMarkdown } from '../report/markdown/explain.js';
import { explainText } from '../report/terminal/explain.js';
import { importSession } from '../session/archive-import.js';
import { openSession, type Session } from '../session/open.js';

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
  const [waterfall] = explain.data.stages;
  const first = (text: string, pattern: RegExp): number => {
    const [, value, unit] = pattern.exec(text.replaceAll('\u00a0', ' ')) ?? [];
    return Number(value) * (unit === 'ms' ? 1000 : 1);
  };
  const time = String.raw`([\d.]+) (µs|ms)`;
  const html = explainReport({ explain }, { clientScript: '' })
    .replaceAll(/<[^>]+>|&nbsp;/g, ' ')
    .replaceAll(/\s+/g, ' ');
  return {
    waterfall: waterfall!,
    shown: {
      document: 1000 * (headlineTime(waterfall!).value ?? 0),
      sentence: first(explain.data.sentences[0]!, new RegExp(`takes ${time}`)),
      list: first(headlineOf(explain.data)!, new RegExp(`decode ${time}`)),
      terminal: first(
        stripVTControlCharacters(explainText(explain, { width: 120 })),
        new RegExp(`^ {2}decode step ${time}`, 'm'),
      ),
      markdown: first(explainMarkdown(explain), new RegExp(`### decode step: ${time}`)),
      page: first(html, new RegExp(`Decode step: ${time}`)),
    },
    texts: { sentence: explain.data.sentences[0]!, terminal: explainText(explain, { width: 120 }) },
  };
}

test('every surface leads with the time without the profiler, and shares are of it', async () => {
  const session = await traceSessionOf({ stages: [step, clean], ...rows }, { clean: 'clean' });
  const { waterfall, shown, texts } = await surfaces(session);
  for (const [surface, us] of Object.entries(shown)) expect(us, surface).toBeCloseTo(60, 0);
  const { bars, profiler, ms } = explainedBars(waterfall.bars);
  // 100 µs under the profiler, 60 without: 40 added, taken out of the host's 55.
  expect(profiler!.ms).toBeCloseTo(0.04, 9);
  expect(ms).toBeCloseTo(0.06, 9);
  expect(bars.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1, 9);
  expect(bars.find(({ id }) => id.startsWith('host'))!.share).toBeCloseTo(15 / 60, 6);
  expect(texts.sentence).toContain('0.10 ms under the profiler');
  expect(texts.terminal.replaceAll('\u00a0', ' ')).toMatch(
    /measured +0\.0600 ms\n +profiler_overhead +0\.0400 ms\n +under the profiler +0\.1000 ms/,
  );
});

test('without a clean execution the first sentence says that the time is the profiler’s', async () => {
  const { shown, waterfall, texts } = await surfaces(await traceSessionOf({ stages: [step], ...rows }));
  for (const [surface, us] of Object.entries(shown)) expect(us, surface).toBeCloseTo(100, 0);
  expect(explainedBars(waterfall.bars).profiler).toBeNull();
  expect(texts.sentence).toMatch(/takes 0\.10 ms under the profiler/);
});

describe('a real clean and nsys pair: eager decode on an H200', () => {
  const root = mkdtempSync(join(tmpdir(), 'inferscope-headline-'));
  const home = { root, sessions: join(root, 'sessions'), cache: join(root, 'cache') };
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  let session: Session;
  let explain: Awaited<ReturnType<typeof explainSession>>;
  /** By SQL over the tables: mean step without a profiler, and the device's work in a step under it. */
  let clean_ms: number;
  let busy_ms: number;

  beforeAll(async () => {
    const { id } = await importSession('test/fixtures/diagnosis/launch_bound_decode-fault.tgz', home);
    session = await openSession(id, home);
    explain = await explainSession(session);
    const database = await session.connect();
    const [row] = await database.query<{ clean_ms: number; busy_ms: number }>(
      `SELECT (SELECT avg(end_ns - start_ns) / 1e6 FROM stages WHERE execution_id = 'inferscope' AND kind = 'decode') AS clean_ms,
         (SELECT sum(exclusive_ns) / 1e6 FROM kernels) / (SELECT count(*) FROM stages WHERE execution_id = 'nsys' AND kind = 'decode') AS busy_ms`,
    );
    ({ clean_ms, busy_ms } = row!);
    await database.close();
  });

  test('findings have their shares, texts and what is left of the time without the profiler', () => {
    const [first] = explain.data.findings;
    expect(first!.id).toBe('launch_bound:decode');
    expect(first!.at_stake_ms! / first!.at_stake_share!).toBeCloseTo(clean_ms, 6);
    expect(first!.gain!.after_ms + first!.gain!.expected_ms).toBeCloseTo(clean_ms, 2);
    expect(first!.title).toContain(`idles ${Math.round(100 * (1 - busy_ms / clean_ms))} %`);
    expect(first!.cause).toContain(`takes ${clean_ms.toFixed(2)} ms, its kernels ${busy_ms.toFixed(2)} ms`);
  });
});
