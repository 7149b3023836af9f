import { afterAll, describe, expect, test } from 'vitest';
import { analyzeBench } from '../../facts/bench/bench.js';
import { gpuWorkload, planOf } from '../../facts/bench/test-bench.js';
import { profileRows } from '../../facts/test-rows.js';
import { repetitions, sessionOf } from '../../facts/test-session.js';
import { benchPoint } from '../../model/bench.js';
import { importSession } from '../../session/archive-import.js';
import { openSession, type Session } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { answerer } from './stored-answer.js';

/** The questions of the requirements, without a model; each number is checked against SQL over the rows, or by hand. */
const home = testHome();
const open = async (file: string) =>
  openSession((await importSession(`test/fixtures/${file}.tgz`, home)).id, home);
const closing: (() => Promise<void>)[] = [];
afterAll(() => Promise.all(closing.map((close) => close())));

async function asking(session: Session) {
  const { answer, close } = await answerer(session);
  const database = await session.connect();
  closing.push(close, () => database.close());
  return {
    answer,
    direct: async (question: string) => (await answer(question)).answer.split('\n')[0]!,
    one: async <T>(sql: string) => (await database.query<T & Record<string, unknown>>(sql))[0]!,
  };
}
const numberIn = (text: string, pattern: RegExp): number => Number(pattern.exec(text)?.[1]);

describe('a decode step on an H200, launched kernel by kernel', async () => {
  const { answer, direct, one } = await asking(await open('diagnosis/launch_bound_decode-fault'));
  const steps = `FROM stages s WHERE s.kind = 'decode' AND NOT coalesce(s.warmup, false)`;
  const decodeSteps = `FROM kernels k JOIN stages s USING (execution_id, capture_id, stage_id)
    WHERE s.kind = 'decode' AND NOT coalesce(s.warmup, false)`;

  test('Is the GPU fully utilized during generation?', async () => {
    const text = await direct('Is the GPU fully utilized during generation?');
    // One stream, so that kernels and copies do not overlap; compared with the mean step without the profiler.
    const { share } = await one<{ share: number }>(
      `SELECT (SELECT sum(k.dur_ns) / count(DISTINCT s.stage_id) ${decodeSteps}) / (SELECT avg(end_ns - start_ns) ${steps}
         AND execution_id NOT IN (SELECT execution_id FROM kernels)) AS share`,
    );
    expect(text).toMatch(/^No: /);
    expect(Math.abs(numberIn(text, /busy for ([\d.]+) %/) - 100 * share)).toBeLessThan(1);
  });

  test('launches against layers', async () => {
    const text = await direct('How many kernels are launched per decode step, against layers?');
    const { kernels } = await one<{ kernels: number }>(
      `SELECT count(*) / count(DISTINCT (s.execution_id, s.stage_id)) AS kernels ${decodeSteps}`,
    );
    expect(numberIn(text, /runs ([\d.]+) kernels/)).toBeCloseTo(kernels, 0);
    expect(text).toContain('40 layers');
    expect(numberIn(text, /: ([\d.]+) for each/)).toBeCloseTo(kernels / 40, 0);
  });

  test('GEMM share, attention share, elementwise overhead', async () => {
    const found = await answer('What are the GEMM share, the attention share and the elementwise overhead?');
    for (const name of ['gemm', 'attention', 'elementwise']) {
      const { share } = await one<{ share: number }>(
        `SELECT sum(k.dur_ns) FILTER (k.class = '${name}') / sum(k.dur_ns) AS share ${decodeSteps}`,
      );
      const stated = numberIn(
        found.answer,
        new RegExp(`^${name} takes .*?: ([\\d.]+) % of its kernel`, 'im'),
      );
      expect(Math.abs(stated - 100 * share), name).toBeLessThan(0.6);
    }
  });

  const verdictQuestion = 'Is CPU scheduling, kernels or allocation the cost?';
  test(verdictQuestion, async () => {
    const text = await direct(verdictQuestion);
    // Kernels and copies from nsys, the step time from the clean execution.
    const { busy, clean } = await one<{ busy: number; clean: number }>(
      `SELECT (SELECT sum(k.dur_ns) / count(DISTINCT s.stage_id) ${decodeSteps}) AS busy,
         (SELECT avg(end_ns - start_ns) ${steps} AND execution_id NOT IN (SELECT execution_id FROM kernels)) AS clean`,
    );
    expect(text).toMatch(/^The host costs most of a decode step/);
    expect(Math.abs(numberIn(text, /kernels and copies ([\d.]+) %/) - (100 * busy) / clean)).toBeLessThan(1);
  });

  test('MFU and MBU per stage', async () => {
    const text = await direct('What are MFU and MBU per stage?');
    // At batch 1 a step reads all weights once, 2 FLOPs for each: MFU / MBU is 2 × bandwidth / (2 bytes × peak).
    const mfu = numberIn(text, /MFU ([\d.]+) %/);
    const mbu = numberIn(text, /MBU ([\d.]+) %/);
    expect(mfu / mbu / (4.8e12 / 989.4e12)).toBeGreaterThan(0.9);
    expect(mfu / mbu / (4.8e12 / 989.4e12)).toBeLessThan(1.5);
  });

  test('missing data is not reported as healthy', async () => {
    const found = await answer('Are there health flags?');
    expect(found.answer).toMatch(/^No warnings: 2 of 5 checks/);
    expect(found.answer).toMatch(/Not checked:[^]*Throttled clocks/);
  });

  test('Are tensor cores used? Unknown without counters, whatever kernel names suggest', async () => {
    for (const question of ['Are tensor cores used?', 'Which kernels are memory-bound vs compute-bound?']) {
      const found = await answer(question);
      expect([found.answered_by, found.next_capture]).toEqual(['none', expect.stringContaining('ncu')]);
      expect(found.queries).toEqual([]);
    }
  });

  test('a question that one point cannot answer names the benchmark that can', async () => {
    for (const [question, bench] of [
      ['Does increasing batch size improve utilization?', 'bench throughput'],
      ['How does output length compare?', 'bench sequence'],
      ['Where does batch scaling slow?', 'bench throughput'],
    ] as const) {
      const found = await answer(question);
      expect([found.answered_by, found.next_capture]).toEqual(['none', expect.stringContaining(bench)]);
    }
  });
});

test('Which kernels are memory-bound vs compute-bound? Both lists, from counters', async () => {
  const { answer, one } = await asking(await open('diagnosis/uncoalesced-fault'));
  const found = await answer('Which kernels are memory-bound vs compute-bound?');
  expect(found.answer).toMatch(/^1 of 1 kernel with counters is memory-bound, 0 are compute-bound.*row_sums/);
  const { value } = await one<{ value: number }>(
    `SELECT max(value) AS value FROM counters WHERE metric = 'gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed'`,
  );
  expect(Math.abs(numberIn(found.answer, /memory ([\d.]+) % of peak/) - value)).toBeLessThan(0.5);
});

test('Is CPU scheduling, kernels or allocation the cost? From torch operators', async () => {
  const { answer, one } = await asking(await open('kineto-torch2.11-h200/tiny-llm-b1-session'));
  const found = await answer('Is CPU scheduling, kernels or allocation the cost?');
  // One stream; the profiler recorded no allocation call of the driver.
  const { share } = await one<{ share: number }>(
    `WITH decode_stages AS (SELECT stage_id, end_ns - start_ns AS ns FROM stages WHERE kind = 'decode' AND NOT coalesce(warmup, false))
     SELECT (SELECT sum(dur_ns) FROM kernels JOIN decode_stages USING (stage_id)) / (SELECT sum(ns) FROM decode_stages) AS share`,
  );
  expect(found.answer).toMatch(/^Decode: [^\n]*\(host 97 %, kernels 3\.0 %, allocation 0 %\)/);
  expect(Math.abs(numberIn(found.answer, /kernels and copies ([\d.]+) %/) - 100 * share)).toBeLessThan(0.2);
});

test('Is the GPU throttled? How much power does it draw?', async () => {
  const { answer, direct, one } = await asking(await open('vllm-0.26-h200/run-in-process'));
  expect((await answer('Is the GPU throttled?')).answered_by).toBe('stored');
  const { metric, mean, seconds } = await one<{ metric: string; mean: number; seconds: number }>(
    `SELECT metric, avg(value) AS mean, (max(t_ns) - min(t_ns)) / 1e9 AS seconds FROM telemetry
     WHERE metric LIKE 'utilization%' AND scope LIKE 'gpu%' GROUP BY metric`,
  );
  expect(metric).toBe('utilization_percent');
  const text = await direct('What is the utilization over the run?');
  expect(Math.abs(numberIn(text, /utilized ([\d.]+) % on average/) - mean)).toBeLessThanOrEqual(0.5);
  expect(Math.abs(numberIn(text, /on average over ([\d.]+) s/) / seconds - 1)).toBeLessThan(0.01);
});

describe('a benchmark of batches, prompts and outputs', async () => {
  // Decode steps of 10, 10, 12 and 24 ms: 100, 200, 333 and 333 tok/s. Longer prompts and outputs at batch 1.
  const shapes = [
    { point: benchPoint(['throughput'], 1, 4, 3), prefill: 9, step: 10 },
    { point: benchPoint(['throughput'], 2, 4, 3), prefill: 9, step: 10 },
    { point: benchPoint(['throughput'], 4, 4, 3), prefill: 9, step: 12 },
    { point: benchPoint(['throughput'], 8, 4, 3), prefill: 20, step: 24 },
    { point: benchPoint(['sequence'], 1, 8, 3), prefill: 18, step: 10 },
    { point: benchPoint(['sequence'], 1, 4, 5), prefill: 9, step: 10 },
  ];
  const rows = repetitions(
    shapes.flatMap(({ point, prefill, step }, i) =>
      [0, 1].map((iteration) => {
        const decodeMs = Array.from({ length: point.output_len - 1 }, () => step);
        return {
          point: point.point,
          batch: point.batch_size,
          inputLen: point.input_len,
          samplingMs: [0, ...decodeMs.map(() => 0)],
          loopMs: 0,
          pid: 1,
          launch: 0,
          iteration: 2 * i + iteration,
          startMs: 1000 * (2 * i + iteration),
          prefillMs: prefill,
          decodeMs,
        };
      }),
    ),
  );
  const session = await sessionOf(home, rows, {
    workload: gpuWorkload(),
    roofline: null,
    kind: 'bench',
    artifacts: {
      'bench-plan': planOf(
        shapes.map(({ point }) => point),
        { parts: ['throughput', 'sequence'] },
      ),
    },
  });
  const { answer, direct } = await asking(session);

  test('where batch scaling slows has one answer', async () => {
    for (const question of [
      'Where does batch scaling slow?',
      'From which batch size does throughput stop scaling?',
    ]) {
      expect(await direct(question)).toMatch(
        /^Batching does not pay off beyond batch 4: from 4 to 8 .* 1\.00× the/,
      );
      // No other answer names another batch size.
      expect((await answer(question)).answer.match(/slows/g)).toBeNull();
    }
  });

  test('How does output length compare? What does twice the prompt cost?', async () => {
    // End to end 9 + 2 × 10 and 9 + 4 × 10 ms; TTFT 9 and 18 ms.
    expect(await direct('How does output length compare?')).toMatch(/3 → 5: 29(\.0)? ms → 49(\.0)? ms/);
    expect(await direct('What does twice the prompt cost?')).toMatch(/4 → 8: 9(\.0+)? ms → 18(\.0)? ms \(2/);
  });

  test('What do a million tokens cost?', async () => {
    // 12 tokens in 33 ms on one GPU: 1e6 / 363.6 / 3600 = 0.764 h, × 3.60 = 2.75.
    expect(await direct('What do a million tokens cost at $3.60 per GPU hour?')).toMatch(
      /^One million output tokens cost \$2\.75: 0\.764 GPU hours at \$3\.60 \(batch 4, .*: 364 tok\/s\)\. \[q1\]$/,
    );
    const { answer: text } = await answer('What does a token cost?');
    expect(text).toMatch(/^One million output tokens take 0\.764 GPU hours \(batch 4/);
    expect(text).toContain('the price of an hour');
  });

  test('Are there health flags?', async () => {
    const found = await answer('Are there health flags?');
    // 4 × 3 tokens in 33 ms, 8 × 3 in 68 ms, all in one launch.
    expect(found.answer).toMatch(/^2 warnings/);
    expect(found.answer).toMatch(/no scaling: [^\n]*batch 8 [^\n]*than batch 4: 364 tok\/s → 353 tok\/s/);
  });

  test('memory-bound or compute-bound is answered per batch from its own figures', async () => {
    const { answer: text } = await answer('Is decode memory-bound or compute-bound?');
    for (const batch of [1, 2, 4, 8])
      expect(text).toMatch(new RegExp(`^Decode at batch ${batch}, 4 in \\+ 3 out .*MFU <0.01 %`, 'm'));
    const points = (await analyzeBench(session)).data.variants[0]!.points;
    const mfu = (batch: number) =>
      points.find((point) => point.batch_size === batch && point.parts.includes('throughput'))!
        .model_utilization.decode_mfu.value!;
    // The step at batch 8 takes 2.4 times that of batch 1 and computes 8 times as much.
    expect(mfu(8) / mfu(1)).toBeCloseTo(8 / 2.4, 0);
  });

  test('Does increasing batch size improve utilization?', async () => {
    const found = await answer('Does increasing batch size improve utilization?');
    expect(found.queries.map(({ tool }) => tool)[0]).toBe('bench answer utilization');
  });
});

describe('the embedded engine', async () => {
  const { answer, direct } = await asking(await sessionOf(home, profileRows()));

  test('Is CPU scheduling, kernels or allocation the cost?', async () => {
    const text = await direct('Is CPU scheduling, kernels or allocation the cost?');
    // Decode takes 7.75 ms; kernels and gaps of the profiled pass are 6 + 2 + 1 and 8 + 2 + 1 ms, mean 10: 129 % cannot be a share, so the
    // verdict is withheld.
    expect(text).not.toMatch(/\d{3} %/);
    expect(text).toMatch(
      /^The largest cost in a decode step .* is not known: the times of the profiled and the clean pass/,
    );
  });

  test('What are MFU and MBU per stage?', async () => {
    const found = await answer('What are MFU and MBU per stage?');
    // 2 layers of 2·64² + 2·64·32 + 3·64·192 weights and a head of 64·512, 2 FLOPs each, 2 sequences; attention over 5.5 keys: 4·64 FLOPs
    // per key, layer and sequence. A step takes 7.75 ms; the peak is 100 GFLOP/s.
    const weights = 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 192) + 64 * 512;
    const flops = 2 * 2 * weights + 4 * 64 * 2 * 2 * 5.5;
    const mfu = numberIn(found.answer, /Decode at batch 2: MFU ([\d.]+) %/);
    expect(mfu).toBeCloseTo((100 * flops) / 7.75e-3 / 100e9, 3);
    const rate = numberIn(found.answer, /Decode at batch 2: MFU [\d.]+ % \(([\d.]+) MFLOP\/s\)/);
    expect(rate).toBeCloseTo(flops / 7.75e-3 / 1e6, 1);
    expect(found.answer).toMatch(/Prefill at batch 2: MFU [\d.]+ % .*, MBU [\d.]+ % \([\d.]+ MB\/s\)/);
  });

  test('without a GPU and counters', async () => {
    expect(await direct('Is the GPU fully utilized during generation?')).toMatch(/^No GPU was used/);
    const found = await answer('Which kernels are memory-bound vs compute-bound?');
    expect([found.answered_by, found.next_capture]).toEqual(['stored', null]);
    // The profiled decode steps have 6 and 8 ms of GEMM and 2 ms of attention.
    expect(found.answer).toMatch(
      /decode by the roofline: memory-bound: gemm \(7\.00 ms\), attention \(2\.00 ms\); compute-bound: none/,
    );
  });

  test('figures that only a GPU has', async () => {
    for (const question of ['Are tensor cores used?', 'What is the L2 hit rate?', 'Is the GPU throttled?']) {
      const found = await answer(question);
      expect([question, found.answered_by, found.next_capture]).toEqual([question, 'stored', null]);
      expect(found.answer).toMatch(/^No GPU was used/);
    }
  });

  test('Are there health flags?', async () => {
    const found = await answer('Are there health flags?');
    expect(found.answer).toMatch(/^1 warning/);
    expect(found.answer).toMatch(/Not checked:[^]*CPU by accident/);
  });
});
