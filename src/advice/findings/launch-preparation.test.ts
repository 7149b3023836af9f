import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import { explainSession } from '../explain/explain.js';
import { expectEvidence } from './test-evidence.js';

const root = mkdtempSync(join(tmpdir(), 'inferscope-preparation-'));
const home = { root, sessions: join(root, 'sessions'), cache: join(root, 'cache') };
afterAll(() => rmSync(root, { recursive: true, force: true }));

/**
 * From the trace's JSON, computed by another program: 8 decode steps of 73.186 ms with 924 launches and 2.189 ms of
 * kernels each. Every step has a call of aten::_cudnn_attention_forward of 37.6 to 40.9 ms, 38.732 ms on average,
 * without an API call of 50 µs inside: cuDNN plans attention for a new length.
 */
const oracle = { wall_ms: 73.186, kernels_ms: 2.189, planning_ms: 38.732 };

test("reports cuDNN's planning of attention in every eager decode step", async () => {
  const archive = 'test/fixtures/kineto-torch2.11-h200/tiny-llm-b1-session.tgz';
  const session = await openSession((await importSession(archive, home)).id, home);
  const { data } = await explainSession(session);
  const [first, second] = data.findings;
  expect(first!.id).toBe('launch_bound:decode');
  expect(first!.title).toContain('924 times and spends time inside aten::_cudnn_attention_forward');
  const preparing = /For another ([\d.]+) ms operators do preparation/.exec(first!.cause);
  expect(Number(preparing![1])).toBeCloseTo(oracle.planning_ms, 0);
  // A graph removes launches and planning. Kernels, graph nodes and the time before the step remain.
  const rest = oracle.wall_ms - first!.gain!.expected_ms;
  expect(rest).toBeGreaterThan(oracle.kernels_ms + 924 * 0.00045);
  expect(rest).toBeLessThan(oracle.kernels_ms + 7);
  // The same program with known lengths took 25.6 ms per step under the same profiler, so repeated sizes save the
  // planning.
  expect(second).toMatchObject({ id: 'host_bound:decode', hidden_by: 'launch_bound:decode' });
  expect(second!.gain!.expected_ms).toBeGreaterThan(oracle.planning_ms);
  expect(second!.gain!.expected_ms).toBeLessThan(1.1 * oracle.planning_ms);
  expect(second!.change.example).toContain('sdpa_kernel');
  await expectEvidence(session, data.findings);
});
