import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compareDocumentSchema } from '../../model/documents/compare.js';
import type { TraceResult } from '../../model/documents/trace.js';
import { importSession } from '../../session/archive-import.js';
import { openSession, type Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { testHome } from '../../session/test-folder.js';
import { compareSessions } from '../../compare/sessions/compare.js';
import { kernel, sessionOf } from './test-hand.js';
import { fixture, imported } from './test-import.js';
import { analyzeTrace } from './trace.js';

const home = testHome();
const importArchive = async (path: string): Promise<Session> =>
  openSession((await importSession(fixture(path), home)).id, home);
/** Real captures. Every share in charts and tables is compared with SQL over their rows. */
const sessions: Record<string, () => Promise<Session>> = {
  // Two decode steps, with loading and warm-up.
  nsys: () => imported(home, 'nsys-sqlite', fixture('nsys-2025.3.1-h200/tiny-whole.sqlite')),
  // CUDA graphs, 96 steps, telemetry.
  vllm: () => importArchive('vllm-0.26-h200/run-in-process.tgz'),
  // NCCL of two ranks next to compute.
  nccl: () => importArchive('diagnosis/exposed_communication-fault.tgz'),
  // Operators.
  kineto: () => importArchive('kineto-torch2.11-h200/tiny-llm-b1-session.tgz'),
};

/** Length of the union of intervals inside [from, to]. */
const coveredSql = (intervals: string, from: number, to: number): string =>
  `(SELECT coalesce(sum(e - greatest(s, coalesce(before, s))) FILTER (e > coalesce(before, s)), 0)::DOUBLE FROM (
     SELECT s, e, max(e) OVER (ORDER BY s, e ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM (
       SELECT greatest(start_ns, ${from}) AS s, least(start_ns + dur_ns, ${to}) AS e FROM (${intervals})
       WHERE start_ns < ${to} AND start_ns + dur_ns > ${from})))`;

describe.each(Object.keys(sessions))('%s', (name) => {
  let session: Session;
  let data: TraceResult;
  let database: SessionDatabase;
  let focusWhere: string;
  const query = <T extends object>(sql: string) => database.query<T>(sql);

  beforeAll(async () => {
    session = await sessions[name]!();
    ({ data } = await analyzeTrace(session));
    database = await session.connect();
    const { attribution, focus } = data.source;
    focusWhere = `capture_id = '${attribution.capture_id}' AND execution_id = '${attribution.execution_id}' AND rank IS NOT DISTINCT FROM ${focus.rank} AND device IS NOT DISTINCT FROM ${focus.device}`;
  }, 60_000);
  afterAll(() => database.close());

  test('shares of kernels, classes, short kernels and classified kernels equal SQL', async () => {
    const [all] = await query<{ n: number; ns: number; short: number; short_ns: number; other_ns: number }>(
      `SELECT count(*) AS n, sum(dur_ns)::DOUBLE AS ns, count_if(dur_ns < 10000) AS short, sum(dur_ns) FILTER (dur_ns < 10000)::DOUBLE AS short_ns,
              coalesce(sum(dur_ns) FILTER (class IN ('other', 'graph')), 0)::DOUBLE AS other_ns FROM kernels WHERE ${focusWhere}`,
    );
    expect(data.kernels_total).toMatchObject({ count: all!.n, total_ns: all!.ns });
    expect(data.attribution.classified_share.value).toBeCloseTo(1 - all!.other_ns / all!.ns, 9);
    expect(data.short_kernels.phases[0]).toMatchObject({ kernels: all!.n, short: all!.short });
    expect(data.short_kernels.phases[0]!.time_share).toBeCloseTo(all!.short_ns / all!.ns, 9);
    for (const { name: kernelName, share } of data.kernels.slice(0, 5)) {
      const [row] = await database.query<{ ns: number }>(
        `SELECT sum(dur_ns)::DOUBLE AS ns FROM kernels WHERE ${focusWhere} AND name = $1`,
        [kernelName],
      );
      expect(share).toBeCloseTo(row!.ns / all!.ns, 9);
    }
    // Sampling, and what no range launched, belongs to the step in which it starts; sampling is also a phase of its own.
    const steps = data.phases
      .filter(({ kind }) => kind === 'decode' || kind === 'prefill')
      .flatMap(({ kind, rows: windows }) =>
        windows.map(({ start_ns, wall_ns }) => `('${kind}', ${start_ns}, ${start_ns + wall_ns})`),
      );
    const rows = await query<{ phase: string; class: string; ns: number; share: number }>(
      `WITH steps(step, from_ns, until_ns) AS (VALUES ${steps.join(', ')}),
         marked AS (SELECT CASE WHEN p.warmup THEN 'warmup' ELSE coalesce(p.kind, 'outside') END AS phase, coalesce(k.class, 'other') AS class, k.dur_ns, k.start_ns
           FROM (SELECT * FROM kernels WHERE ${focusWhere}) k LEFT JOIN stages s ON s.capture_id = k.capture_id AND s.stage_id = k.stage_id
           LEFT JOIN stages p ON p.capture_id = s.capture_id AND p.stage_id = s.phase_id),
         placed AS (SELECT class, dur_ns, unnest(list_distinct([coalesce(step, phase), CASE WHEN phase = 'sampling' THEN phase END])) AS phase
           FROM marked LEFT JOIN steps ON phase IN ('sampling', 'outside') AND start_ns >= from_ns AND start_ns < until_ns)
       SELECT phase, class, sum(dur_ns)::DOUBLE AS ns, (sum(dur_ns) / sum(sum(dur_ns)) OVER (PARTITION BY phase))::DOUBLE AS share
       FROM placed GROUP BY phase, class`,
    );
    const phases = data.classes.filter(({ kind }) => kind !== null);
    expect(phases.flatMap((phase) => phase.rows)).toHaveLength(rows.length);
    for (const { phase, class: opClass, ns, share } of rows) {
      const row = phases
        .find(({ kind }) => kind === phase)!
        .rows.find((candidate) => candidate.class === opClass)!;
      expect([phase, opClass, row.total_ns]).toEqual([phase, opClass, ns]);
      expect(row.share).toBeCloseTo(share, 9);
    }
  });

  test('each bin of the whole capture equals SQL', async () => {
    const { start_ns: origin, bin_ns: bin, classes } = data.timeline!.density;
    const bins = await query<{ class: string; bin: number; share: number }>(
      `WITH work AS (
         SELECT coalesce(class, 'other') AS class, start_ns - ${origin} AS s, start_ns + dur_ns - ${origin} AS e, coalesce(exclusive_ns, dur_ns) AS ns FROM kernels WHERE ${focusWhere}
         UNION ALL SELECT 'copies', start_ns - ${origin}, start_ns + dur_ns - ${origin}, coalesce(exclusive_ns, dur_ns) FROM copies WHERE ${focusWhere})
       SELECT class, bin, (sum(ns / (e - s) * (least(e, (bin + 1) * ${bin}) - greatest(s, bin * ${bin}))) / ${bin})::DOUBLE AS share
       FROM work JOIN (SELECT unnest(range(400)) AS bin) b ON s < (bin + 1) * ${bin} AND e > bin * ${bin} GROUP BY ALL`,
    );
    for (const { class: opClass, bin: binIndex, share } of bins)
      expect(classes.find((className) => className.class === opClass)!.share[binIndex]).toBeCloseTo(
        share,
        3.9,
      );
    const [whole] = await query<{ ns: number }>(
      `SELECT (SELECT coalesce(sum(exclusive_ns), 0) FROM kernels WHERE ${focusWhere})::DOUBLE + (SELECT coalesce(sum(exclusive_ns), 0) FROM copies WHERE ${focusWhere})::DOUBLE AS ns`,
    );
    const drawn = classes.flatMap(({ share }) => share).reduce((sum, share) => sum + share * bin, 0);
    expect(drawn / whole!.ns).toBeCloseTo(1, 2);
  });

  test("causes of idle time are the gap parts, in the table and in the timeline's row", async () => {
    const parts = [
      'synchronization',
      'host',
      'launch_overhead',
      'launch_latency',
      'device_dependency',
      'unattributed',
    ];
    const sums = (partExpression: (part: string) => string) =>
      parts.map((part) => `coalesce(${partExpression(`${part}_ns`)}, 0)::DOUBLE AS ${part}`).join(', ');
    const [whole] = await query<Record<string, number>>(
      `SELECT ${sums((part) => `sum(${part})`)}, sum(dur_ns)::DOUBLE AS dur FROM gaps WHERE ${focusWhere}`,
    );
    const { waits } = data.idle;
    const total = waits.reduce((sum, { total_ns }) => sum + total_ns, 0);
    // At most 40 rows are shown.
    if (waits.length < 40) {
      expect(total).toBe(whole!['dur']);
      for (const part of parts) {
        const waited = waits
          .filter(({ cause }) => cause === part)
          .reduce((sum, wait) => sum + wait.total_ns, 0);
        expect([part, waited]).toEqual([part, whole![part]]);
      }
    }
    expect(total).toBeGreaterThan(0.95 * whole!['dur']!);
    // A single gap is split into its causes in the same way.
    const [longest] = data.idle.longest;
    const [gap] = await query<Record<string, number>>(
      `SELECT dur_ns::DOUBLE AS dur, ${sums((part) => part)} FROM gaps WHERE ${focusWhere} ORDER BY dur_ns DESC, start_ns LIMIT 1`,
    );
    expect(longest!.dur_ns).toBe(gap!['dur']);
    expect(longest!.parts.reduce((sum, { ns }) => sum + ns, 0)).toBe(gap!['dur']);
    for (const { id, ns } of longest!.parts) expect([id, ns]).toEqual([id, gap![id]]);
    expect(longest!.cause).toBe(longest!.parts[0]!.id);
    const { origin_ns, dur_ns, lanes, names, events } = data.timeline!;
    const drawn = events.filter(({ lane }) => lanes[lane]!.what === 'idle');
    const inside = drawn.filter((event) => event.start_ns >= 0 && event.start_ns + event.dur_ns <= dur_ns);
    const gaps = await query<Record<string, number>>(
      `SELECT start_ns, ${sums((part) => part)} FROM gaps WHERE ${focusWhere} AND start_ns < ${origin_ns + dur_ns} AND start_ns + dur_ns > ${origin_ns}`,
    );
    for (const part of parts) {
      let expected = 0;
      for (const gap of gaps) {
        const from =
          gap['start_ns']! +
          parts.slice(0, parts.indexOf(part)).reduce((sum, gapPart) => sum + gap[gapPart]!, 0);
        if (from >= origin_ns && from + gap[part]! <= origin_ns + dur_ns) expected += gap[part]!;
      }
      const spans = inside.filter((event) => names[event.name] === part);
      expect([part, spans.reduce((sum, span) => sum + span.dur_ns, 0)]).toEqual([part, expected]);
    }
  });

  test('busy, idle, exposed communication and copies of each window equal SQL', async () => {
    const table = (from: string, where = 'true') =>
      `SELECT start_ns, dur_ns FROM ${from} WHERE ${focusWhere} AND ${where}`;
    const compute = table('kernels', `class IS DISTINCT FROM 'communication'`);
    const kernels = table('kernels');
    const all = `${kernels} UNION ALL ${table('copies')}`;
    for (const phase of data.phases) {
      const causes = phase.idle_by_cause.reduce((sum, { share }) => sum + share, 0);
      expect(causes).toBeCloseTo(phase.idle_share, 6);
      const means = { busy_ns: 0, idle_ns: 0 };
      for (const row of phase.rows) {
        for (const key of ['busy_ns', 'idle_ns'] as const) means[key] += row[key] / phase.rows.length;
        if (row !== phase.rows[0] && row !== phase.rows.at(-1)) continue;
        const [from, to] = [row.start_ns, row.start_ns + row.wall_ns];
        const [covered] = await query<Record<string, number>>(
          `SELECT ${coveredSql(all, from, to)} AS busy, ${coveredSql(kernels, from, to)} AS kernels, ${coveredSql(compute, from, to)} AS compute`,
        );
        const expectClose = (value: number, expected: number) =>
          expect(Math.abs(value - expected)).toBeLessThan(1e-4 * row.wall_ns + 2);
        expectClose(row.busy_ns, covered!['busy']!);
        expectClose(row.idle_share * row.wall_ns, row.wall_ns - covered!['busy']!);
        expectClose(row.compute_ns, covered!['compute']!);
        expectClose(row.exposed_comm_ns, covered!['kernels']! - covered!['compute']!);
        expectClose(row.exposed_copy_ns, covered!['busy']! - covered!['kernels']!);
      }
      if (phase.rows.length < phase.instances) continue;
      expect(means.busy_ns / phase.busy_ns).toBeCloseTo(1, 6);
      expect(means.idle_ns / phase.idle_ns).toBeCloseTo(1, 6);
    }
  });

  test('communication is hidden behind compute, copies behind kernels', async () => {
    const { start_ns: from, end_ns: to } = data.source;
    const table = (tableName: string, where = 'true') =>
      `SELECT start_ns, dur_ns FROM ${tableName} WHERE ${focusWhere} AND ${where}`;
    const comm = table('kernels', `class = 'communication'`);
    const compute = table('kernels', `class IS DISTINCT FROM 'communication'`);
    const copies = table('copies');
    const [covered] = await query<Record<string, number>>(
      `SELECT ${coveredSql(comm, from, to)} AS comm, ${coveredSql(compute, from, to)} AS compute, ${coveredSql(table('kernels'), from, to)} AS kernels,
        ${coveredSql(copies, from, to)} AS copies, ${coveredSql(`${copies} UNION ALL ${table('kernels')}`, from, to)} AS busy`,
    );
    const {
      comm: comm_ns,
      compute: compute_ns,
      kernels,
      copies: copies_ns,
      busy,
    } = covered! as Record<'comm' | 'compute' | 'kernels' | 'copies' | 'busy', number>;
    const expectClose = (value: number, expected: number) =>
      expect(Math.abs(value - expected)).toBeLessThan(1000);
    expectClose(data.overlap.comm_hidden_ns, comm_ns + compute_ns - kernels);
    expectClose(data.overlap.copy_hidden_ns, copies_ns + kernels - busy);
  });

  test('API calls, and telemetry by phase, equal SQL', async () => {
    const { capture_id, execution_id } = data.source.attribution;
    const rank = `capture_id = '${capture_id}' AND rank IS NOT DISTINCT FROM ${data.source.focus.rank}`;
    const calls = await query<{ name: string; share: number }>(
      `SELECT name, (sum(dur_ns) / sum(sum(dur_ns)) OVER ())::DOUBLE AS share FROM api_calls WHERE ${rank} GROUP BY name`,
    );
    for (const { name: call, share } of calls) {
      const row = data.api_calls.find((candidate) => candidate.name === call);
      if (row) expect(row.share).toBeCloseTo(share, 9);
    }
    for (const { scope, metric, mean, phases } of data.telemetry?.series ?? []) {
      const samples = `(SELECT t_ns, value FROM telemetry WHERE execution_id = '${execution_id}' AND scope = '${scope}' AND metric = '${metric}' AND value IS NOT NULL)`;
      const [row] = await query<{ mean: number }>(`SELECT avg(value) AS mean FROM ${samples}`);
      // Weighted by the time that each sample covers, which is nearly the same for all.
      expect(Math.abs(mean - row!.mean)).toBeLessThanOrEqual(0.02 * Math.abs(row!.mean));
      for (const { kind, samples: n, mean: ofPhase } of phases) {
        const { rows, instances } = data.phases.find((phase) => phase.kind === kind)!;
        if (rows.length < instances) continue;
        const inside = rows.map(
          ({ start_ns, wall_ns }) => `(t_ns >= ${start_ns} AND t_ns < ${start_ns + wall_ns})`,
        );
        const [sampled] = await query<{ n: number; mean: number }>(
          `SELECT count(*) AS n, avg(value) AS mean FROM ${samples} WHERE ${inside.join(' OR ')}`,
        );
        expect(n).toBe(sampled!.n);
        expect(ofPhase).toBeCloseTo(sampled!.mean, 6);
      }
    }
  });

  test('a comparison has the same classes of each phase', async () => {
    // Under another id, because a session is not compared with itself.
    const again = { ...session, id: `${session.id}-again` };
    const comparison = compareDocumentSchema.parse(await compareSessions([session, again])).data;
    // A comparison has sampling of a step in the step only.
    for (const { phase, class: opClass, values } of comparison.classes.filter(
      (row) => row.phase !== 'sampling',
    )) {
      const group = data.classes.find(({ kind }) => kind === phase)!;
      const row = group.rows.find((candidate) => candidate.class === opClass)!;
      expect(values[0]!.share).toBeCloseTo(row.share, 9);
      expect(values[0]!.ms).toBeCloseTo(row.per_instance_ns / 1e6, 6);
    }
  });
});

test('a kernel that runs for most of the capture fills the bins it covers', async () => {
  const { data } = await analyzeTrace(
    await sessionOf({ kernels: [kernel(null, 0, 7900), kernel(null, 9900, 100, { class: 'norm' })] }),
  );
  const mean = (name: string) => {
    const { share } = data.timeline!.density.classes.find((className) => className.class === name)!;
    return share.reduce((sum, value) => sum + value, 0) / share.length;
  };
  expect(mean('gemm')).toBeCloseTo(0.79, 6);
  expect(mean('norm')).toBeCloseTo(0.01, 6);
});

test('a name with launches of several classes shows the class with the most time, in table and comparison', async () => {
  const kernelOf = (from: number, durationUs: number, className: string) =>
    kernel(null, from, durationUs, { class: className });
  const rows = [
    kernelOf(0, 100, 'gemm'),
    kernelOf(200, 100, 'gemm'),
    kernelOf(400, 300, 'attention'),
    kernelOf(800, 10, 'norm'),
  ];
  const [first, second] = [await sessionOf({ kernels: rows }), await sessionOf({ kernels: rows })];
  const { data } = await analyzeTrace(first);
  expect(data.kernels.map((row) => [row.name, row.class])).toEqual([['k', 'attention']]);
  const compared = await compareSessions([first, second]);
  expect(compared.data.kernels.map((row) => row.class)).toEqual(['attention']);
});
