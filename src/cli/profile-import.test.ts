import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { exampleRoofline } from '../facts/test-session.js';
import type { ProfileCapture, ProfiledExecution } from '../capture/onnx/profile.js';
import { packageRoot } from '../model/installation.js';
import { createSession } from '../session/create.js';
import { openSession } from '../session/open.js';
import { testFolder, testHome } from '../session/test-folder.js';
import { summary } from '../session/test-session.js';
import { importProfile } from './profile-import.js';

const fixture = join(packageRoot(), 'test', 'fixtures', 'ort-1.30.0-cpu');
interface Call {
  kind: string;
  start_ns: number;
  end_ns: number;
}
const { runs } = (
  JSON.parse(readFileSync(join(fixture, 'calls.json'), 'utf8')) as Record<'float32', { runs: Call[] }>
).float32;

/** The record of a process with the fixture's calls. */
function recordFile(executionId: string): string {
  const path = join(testFolder(), `${executionId}.jsonl`);
  const common = { v: 1, execution_id: executionId, rank: 0, pid: 7 };
  const lines = runs.map(({ kind, start_ns, end_ns }, i) => ({
    ...common,
    type: 'stage',
    kind,
    name: kind,
    t_ns: start_ns,
    end_ns,
    iteration: 0,
    step: i === 0 ? null : i - 1,
    batch_size: 1,
    new_tokens: i === 0 ? 16 : 1,
    context_tokens_sum: 16 + i,
    warmup: false,
  }));
  writeFileSync(path, `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`);
  return path;
}

async function importTrace(trace: string) {
  const tracePath = join(testFolder(), 'trace.json');
  copyFileSync(trace, tracePath);
  const execution = (
    executionId: 'clean' | 'profiled',
    path: string | null,
    stable: boolean,
  ): ProfiledExecution => ({
    executionId,
    recordPath: recordFile(executionId),
    runs: [
      {
        pid: 7,
        failure: null,
        stopped: false,
        tracePath: path,
        warmupIterations: 2,
        stable,
        host: { telemetry: [], memory: [], issues: [] },
      } as unknown as ProfiledExecution['runs'][number],
    ],
    timedRepeats: 1,
    start_ns: runs[0]!.start_ns,
    end_ns: runs[3]!.end_ns,
  });
  const capture: ProfileCapture = {
    clean: execution('clean', null, false),
    profiled: execution('profiled', tracePath, true),
    outputLen: 32,
    profiledOutputLen: 4,
    stopped: false,
    failure: null,
  };
  const home = testHome();
  const session = await createSession({ home, label: 'x', kind: 'profile' });
  const found = await importProfile(
    { files: session, originNs: runs[0]!.start_ns, append: () => {} },
    capture,
    { roofline: exampleRoofline(), cached: true, ageS: 0 },
  );
  const { id } = await session.finish(
    { ...summary, executions: found.executions, captures: found.captures },
    found.issues,
  );
  const opened = await openSession(id, home);
  const database = await opened.connect();
  try {
    const [counts] = await database.query<{ stages: number; ops: number; peaks: number }>(
      `SELECT (SELECT count(*) FROM stages) AS stages, (SELECT count(*) FROM ops) AS ops,
              (SELECT count(*) FROM microbenchmarks) AS peaks`,
    );
    return { found, counts: counts!, codes: found.issues.map((issue) => issue.code), opened };
  } finally {
    await database.close();
  }
}

test('imports records, trace and roofline; truncation is reported', async () => {
  const { found, counts, codes, opened } = await importTrace(join(fixture, 'decoder-float32.json'));
  // Four calls in each execution; two peaks and four sizes of the roofline.
  expect(counts).toMatchObject({ stages: 8, peaks: 6 });
  expect(counts.ops).toBeGreaterThan(4 * 20);
  expect(codes).toEqual(['warmup_unstable', 'trace_shortened']);
  expect(found.captures.map((capture) => capture.capture_id)).toContain('profiled-trace');
  expect(opened.manifest.artifacts.map((artifact) => artifact.kind).sort()).toEqual([
    'ort-trace',
    'record',
    'record',
    'roofline',
  ]);
});

test('an unreadable trace loses only the attribution; the raw file is saved', async () => {
  const text = readFileSync(join(fixture, 'decoder-float32.json'), 'utf8');
  const cut = join(testFolder(), 'cut.json');
  writeFileSync(cut, text.slice(0, -5000));
  const { found, counts, codes, opened } = await importTrace(cut);
  expect(counts).toMatchObject({ stages: 8, ops: 0 });
  expect(codes).toContain('trace_unreadable');
  expect(found.captures.map((capture) => capture.capture_id)).not.toContain('profiled-trace');
  expect(opened.manifest.artifacts.some((artifact) => artifact.kind === 'ort-trace')).toBe(true);
});
