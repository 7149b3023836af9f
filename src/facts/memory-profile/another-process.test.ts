import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { memoryProfileSchema, type MemoryProfile } from '../../model/documents/memory-profile.js';
import { packageRoot } from '../../model/installation.js';
import { breakdownOf } from './breakdown.js';
import { placesOf } from './places.js';
import { gpuPoints, gpusOfRun, ownPids } from './points.js';
import { mb, planOf, rowsOf, memoryRow } from './test-run.js';
import { otherProcessIssues, measureTotal } from './total.js';
import type { Sample } from './rows.js';

const folder = join(packageRoot(), 'test', 'fixtures', 'memory-another-process-h200');
const readProfile = (name: string): MemoryProfile =>
  memoryProfileSchema.parse(JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8')));

const otherBytes = 4868 * 2 ** 20;

/** Driver samples behind a recorded profile, and torch's records of allocated and reserved memory. */
function samplesOf({ memory_measurements, memory_breakdown }: MemoryProfile) {
  const { baseline, post_warmup, peak } = memory_measurements;
  const bytesOf = (component: string): number =>
    memory_breakdown.components.find((candidate) => candidate.component === component)!.bytes;
  const sampleOf = ({ t_s, total_bytes }: MemoryProfile['memory_measurements']['peak']): Sample => ({
    t_ns: t_s! * 1e9,
    bytes: total_bytes!,
  });
  const warmNs = post_warmup.t_s! * 1e9;
  const idle = bytesOf('model_weights') + bytesOf('framework_overhead');
  const maxBytes = idle + bytesOf('kv_cache') + bytesOf('activations');
  const reserved = maxBytes + bytesOf('allocator_reserve');
  const lines: [string, number][] = [
    ['weights:load:float16', bytesOf('model_weights')],
    ['kv_cache:prefill:float16', bytesOf('kv_cache')],
    ['max_allocated:prefill', maxBytes],
    ['allocated:post_warmup', idle],
    ['reserved:post_warmup', reserved],
    ['max_reserved', reserved],
  ];
  const runSamples: Sample[] = [warmNs - 0.7e9, warmNs + 0.3e9, warmNs + 1.3e9].map((t_ns) => ({
    t_ns,
    bytes: memory_breakdown.total_measured_bytes!,
  }));
  return {
    plan: { launch_ns: baseline.t_s! * 1e9, ended_ns: peak.t_s! * 1e9 + 1 },
    used: [baseline, post_warmup, peak].map(sampleOf),
    warm: warmNs,
    samples: runSamples,
    reserved,
    recorded: lines.map(([kind, bytes]) => memoryRow(kind, bytes / mb, { t_ns: warmNs })),
  };
}

function breakdown(name: 'alone' | 'before' | 'joined') {
  const run = samplesOf(readProfile(name));
  const { launch_ns } = run.plan;
  const otherStartNs = name === 'joined' ? run.warm - 3e9 : launch_ns - 1e8;
  const otherSamples = [otherStartNs, run.warm + 1e9].map((t_ns) => ({ t_ns, bytes: otherBytes }));
  const rows = rowsOf({
    used: new Map([[0, run.used]]),
    recorded: run.recorded,
    processes: [
      { gpu: 0, pid: 100, samples: run.samples },
      ...(name === 'alone' ? [] : [{ gpu: 0, pid: 7, samples: otherSamples }]),
    ],
    phases: [{ label: 'timed', start_ns: run.warm, end_ns: run.plan.ended_ns }],
  });
  const before = { gpu: 0, pid: 7, name: 'python3', used_bytes: otherBytes };
  const plan = planOf({ ...run.plan, others_before: name === 'before' ? [before] : [] });
  const enginePids = ownPids(rows, plan);
  const gpus = gpusOfRun(rows, plan, enginePids);
  const points = gpuPoints(rows, plan, gpus);
  const measured = measureTotal(rows, plan, { gpus, enginePids, points });
  const facts = { log: null, estimate: null, workload: null, pool: null, kvHeadsKnown: true };
  const places = placesOf(rows, plan, { gpus, points, enginePids, measured, ...facts });
  const parts = breakdownOf(places, measured, null);
  const context = parts.components.find(({ component }) => component === 'cuda_context')!;
  const issues = otherProcessIssues(rows, plan, { gpus, enginePids, points });
  return { ...parts, measured, context, issues: issues.map(({ code }) => code) };
}

const aloneResult = breakdown('alone');

test("with the GPU alone, the context is the GPU's memory minus torch's reserve", () => {
  expect(aloneResult.context.bytes).toBe(730_660_864);
  expect(aloneResult).toMatchObject({ residual_bytes: 0, total_measured_bytes: 2_098_003_968, issues: [] });
});

// Without other processes, the driver's process list and its total for the GPU differ by 9 MB.
test.each(['before', 'joined'] as const)(
  '%s: the context excludes other processes and equals that of a run alone',
  (name) => {
    const result = breakdown(name);
    expect(result.issues).toEqual(['gpu_shared']);
    expect(result.total_measured_bytes).toBe(2_088_763_392);
    expect(Math.abs(result.context.bytes - aloneResult.context.bytes)).toBeLessThan(10e6);
    expect(result.context.evidence[0]).toContain('its own processes as listed by the driver 2.089 GB');
    expect(result.residual_bytes).toBe(0);
    expect(result.confidence_levels.overall).toBe('high');
  },
);
