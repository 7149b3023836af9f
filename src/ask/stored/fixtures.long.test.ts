import { afterAll, describe, expect, test } from 'vitest';
import { whatIf } from '../../advice/what-if/what-if.js';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { answerer } from './stored-answer.js';
import { formatCount } from '../../vocabulary/format.js';
import { kernelLabel } from '../../vocabulary/kernel-label.js';

const home = testHome();
const open = async (file: string) =>
  openSession((await importSession(`test/fixtures/${file}.tgz`, home)).id, home);

// H200 sessions: a decode step as a CUDA graph, the same step launched kernel by kernel, one kernel with counters, a memory profile.
const graphSession = await open('diagnosis/launch_bound_decode-fixed');
const launchBoundSession = await open('diagnosis/launch_bound_decode-fault');
const countersSession = await open('diagnosis/low_occupancy-fault');
const memorySession = await open('memory-torch2.11-h200/llama-2-7b');
const closeFunctions: (() => Promise<void>)[] = [];
afterAll(() => Promise.all(closeFunctions.map((close) => close())));

async function openAnswerer(session: typeof launchBoundSession) {
  const { answer, close } = await answerer(session);
  closeFunctions.push(close);
  const database = await session.connect();
  closeFunctions.push(() => database.close());
  return { answer, query: <T>(sql: string) => database.query<T & Record<string, unknown>>(sql) };
}
const firstLine = (answer: string) => answer.split('\n')[0]!;

describe('questions about an nsys timeline', async () => {
  const { answer, query } = await openAnswerer(launchBoundSession);
  const queryRow = async <T>(sql: string) => (await query<T>(sql))[0]!;

  test.each<[string, RegExp]>([
    ['Why is decode slow?', /^Launch-bound: .* Affected: [\d.]+ ms/],
    ['Is the GPU idle between steps?', /^Yes: the GPU is idle for 74 % of a decode step/],
    ['Is decode launch-bound?', /^Yes: Launch-bound/],
    ['Do we synchronize every step?', /^(No\.|Yes:) /],
    [
      'What is the memory bandwidth used?',
      /^Decode at batch 1: MFU 0\.017 % .*, MBU 3\.5 % \([\d.]+ GB\/s\)/,
    ],
    ['Is flash attention used?', /^Yes: attention runs in fused kernels\. .*sdpa/],
    [
      'Is decode memory-bound or compute-bound?',
      /^Decode at batch 1 is on the memory side of its roofline \(MBU 3\.5 %, MFU 0\.017 %\), but/,
    ],
    ['Does it fit on an A100?', /^Yes: .* needs [\d.]+ GB of the 42\.29 GB of .*A100.*: it fits/],
    ['How big is the KV cache?', /^Memory was not measured here; computed from the model/],
    ['Which model ran on which GPU?', /^It ran .*H200/],
    [
      'How much does the profiler add?',
      /^The profiler adds 3\.15 ms to a decode step: 9\.03 ms under it, 5\.88 ms without/,
    ],
    [
      'What should I change first?',
      /^Change first: Launch the whole step at once.*\. Expected gain: [\d.]+ ms per decode step/,
    ],
  ])('%s', async (question, expected) => {
    const found = await answer(question);
    expect([firstLine(found.answer), found.answered_by]).toEqual([expect.stringMatching(expected), 'stored']);
    for (const { id } of found.queries) expect(found.answer).toContain(`[${id}]`);
  });

  test('a rule judges the stage of the question, and does not say no to its opposite', async () => {
    const other = await answer('Is warm-up launch-bound?');
    expect(other.answer).toMatch(/^The session has no warm-up/);
    const overlap = await answer('Do copies and compute overlap?');
    expect(overlap.answer).not.toMatch(/^(No|Yes)\b/);
    const fused = await answer('Are pointwise ops fused?');
    expect(fused.answer).not.toMatch(/^(No|Yes)\b/);
  });

  test('lists as many kernels as asked, and says yes or no once', async () => {
    const top = await answer('Which are the top 7 kernels?');
    expect(top.answer.split('\n').filter((line) => line.startsWith('- '))).toHaveLength(7);
    const graphs = await answer('Are CUDA graphs used?');
    expect(graphs.answer).toMatch(/^No: none of/);
    expect(graphs.answer).not.toMatch(/\n(No|Yes)/);
  });

  test('answers have the numbers of the tables', async () => {
    const longest = await queryRow<{ name: string; ms: number; calls: number }>(
      'SELECT coalesce(short_name, name) AS name, sum(dur_ns) / 1e6 AS ms, count(*) AS calls FROM kernels GROUP BY 1 ORDER BY 2 DESC',
    );
    expect(firstLine((await answer('Which kernels take longest?')).answer)).toContain(
      `The longest kernel is ${kernelLabel(longest.name)}: ${longest.ms.toFixed(2)} ms in ${longest.calls} calls`,
    );
    const { share } = await queryRow<{ share: number }>(
      `SELECT sum(dur_ns) FILTER (class = 'attention') / sum(dur_ns) AS share FROM kernels k
       JOIN stages s USING (execution_id, capture_id, stage_id) WHERE s.kind = 'decode' AND NOT coalesce(s.warmup, false)`,
    );
    const answered = /: ([\d.]+) % of its kernel time/.exec(
      firstLine((await answer('How much is attention?')).answer),
    )!;
    expect(Number(answered[1]) / 100).toBeCloseTo(share, 2);
    const perStep = await queryRow<{ launches: number }>(
      `SELECT count(DISTINCT k.correlation) / count(DISTINCT s.stage_id) AS launches FROM kernels k
       JOIN stages s USING (execution_id, capture_id, stage_id) WHERE s.kind = 'decode' AND NOT coalesce(s.warmup, false)`,
    );
    const count = /from ([\d.]+) launches/.exec(
      firstLine((await answer('How many launches a decode step?')).answer),
    )!;
    expect(Number(count[1])).toBeCloseTo(perStep.launches, 0);
  });

  test('whether CUDA graphs are used is counted in the kernels', async () => {
    const { kernels } = await queryRow<{ kernels: number }>('SELECT count(*) AS kernels FROM kernels');
    expect(firstLine((await answer('Are CUDA graphs used?')).answer)).toBe(
      `No: none of ${formatCount(kernels)} kernels ran in a CUDA graph. [q1]`,
    );
    const graphs = await openAnswerer(graphSession);
    const [counted] = await graphs.query<{ replays: number; share: number }>(
      `SELECT (SELECT count(*) FROM api_calls WHERE name ILIKE 'cudaGraphLaunch%') AS replays, avg(CASE WHEN graph_node IS NULL THEN 0 ELSE 1 END) AS share FROM kernels`,
    );
    const replayed = /^Yes: ([\d.]+) % of .* ran in (\d+) replays? of CUDA graphs\./.exec(
      firstLine((await graphs.answer('Are CUDA graphs used?')).answer),
    )!;
    expect(Number(replayed[1]) / 100).toBeCloseTo(counted!.share, 2);
    expect(Number(replayed[2])).toBe(counted!.replays);
  });

  test('a prediction equals that of explain --what-if, and the answer names this command', async () => {
    const found = await answer('Would CUDA graphs help?');
    const [stage] = (await whatIf(launchBoundSession, ['cudagraph'])).data.stages;
    expect(firstLine(found.answer)).toContain(
      `Yes: with cudagraph a decode step is expected to take ${stage!.after_ms.value!.toFixed(2)} ms`,
    );
    expect(found.queries[0]).toMatchObject({
      tool: 'what-if',
      input: 'inferscope explain launch_bound_decode-fault --what-if cudagraph',
    });
    // Bars have the same labels as on other surfaces, not their ids.
    expect(found.answer).toMatch(/- launch call: 1\.81 ms →/);
    expect(found.answer).not.toMatch(/launch_overhead|host\.program/);
    expect(firstLine((await answer('Would flash attention help?')).answer)).toMatch(/^Hardly: .*no change/);
  });

  test('a question without an answer in the session names the command that records it', async () => {
    for (const [question, capture] of [
      ['What is the L2 hit rate?', /--evaluator nsys,ncu/],
      ['Which kernel is memory bound?', /--evaluator nsys,ncu/],
      ['Why is TTFT high?', /inferscope run/],
      ['What is the p99 latency?', /inferscope bench serve/],
      ['Is the GPU throttling?', /inferscope monitor/],
      ['Would speculative decoding help?', /inferscope bench/],
    ] as const) {
      const found = await answer(question);
      expect([found.answered_by, found.next_capture]).toEqual(['none', expect.stringMatching(capture)]);
      expect(found.answer).toContain(`Next: ${found.next_capture}`);
    }
  });
});

test('"since the last run" answers with the result of session compare', async () => {
  const { answer } = await openAnswerer(graphSession);
  const found = await answer('What changed since the last run?');
  expect(firstLine(found.answer)).toMatch(
    /^Since launch_bound_decode-fault \(2026-11-21 .* decode: .*× as fast/,
  );
  expect((await answer('What changed since yesterday?')).answered_by).toBe('none');
});

test('answers from ncu counters', async () => {
  const { answer } = await openAnswerer(countersSession);
  expect(firstLine((await answer('What limits occupancy?')).answer)).toMatch(
    /6\.1 %.*limited by shared memory/,
  );
  expect(firstLine((await answer('Which kernel is latency-bound?')).answer)).toMatch(
    /^1 of 1 kernel with counters is latency-bound/,
  );
  const unanswered = await answer('Would fp8 help?');
  expect([unanswered.answered_by, unanswered.next_capture]).toEqual([
    'none',
    expect.stringMatching(/^inferscope session set \S+ --model <name>$/),
  ]);
});

test('answers from a memory profile', async () => {
  const { answer } = await openAnswerer(memorySession);
  expect(firstLine((await answer('What takes the memory?')).answer)).toMatch(
    /^Most of it is weights: 13\.48 GB/,
  );
  // 2 × 32 layers × 4096 × 2 bytes per token, 4 sequences of 512 + 48.
  const kvCacheGb = (2 * 32 * 4096 * 2 * 4 * 560) / 1e9;
  const answered = /KV cache: ([\d.]+) GB/.exec(
    firstLine((await answer('How big is the KV cache?')).answer),
  )!;
  expect(Math.abs(Number(answered[1]) / kvCacheGb - 1)).toBeLessThan(0.1);
  expect(firstLine((await answer('Does batch 64 fit on an L4?')).answer)).toMatch(/^No: .* it does not fit/);
  // A memory profile has no kernel times.
  expect((await answer('What if batch 32?')).answered_by).toBe('none');
});
