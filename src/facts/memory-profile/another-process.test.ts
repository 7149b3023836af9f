import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { memoryProfileSchema, type MemoryProfile } from '../../model/documents/memory-profile.js';
import { packageRoot } from '../../model/installation.js';
import { breakdownOf } from './breakdown.js';
import { placesOf } from './places.js';
import { gpuPoints, gpusOfRun, ownPids } from './points.js';
import { mb, planOf, rowsOf, memoryRow } from './test-run.js';
import { otherIssues, totalMeasured } from './total.js';
import type { Sample } from './rows.js';

const folder = join(packageRoot(), 'test', 'fixtures', 'memory-another-process-h200');
const recorded = (name: string): MemoryProfile =>
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
  const warm = post_warmup.t_s! * 1e9;
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
  const runSamples: Sample[] = [warm - 0.7e9, warm + 0.3e9, warm + 1.3e9].map((t_ns) => ({
    t_ns,
    bytes: memory_breakdown.total_measured_bytes!,
  }));
  return {
    plan: { launch_ns: baseline.t_s! * 1e9, ended_ns: peak.t_s! * 1e9 + 1 },
    used: [baseline, post_warmup, peak].map(sampleOf),
    warm,
    samples: runSamples,
    reserved,
    recorded: lines.map(([kind, bytes]) => memoryRow(kind, bytes / mb, { t_ns: warm })),
  };
}

function breakdown(name: 'alone' | 'before' | 'joined') {
  const made = samplesOf(recorded(name));
  const { launch_ns } = made.plan;
  const came = name === 'joined' ? made.warm - 3e9 : launch_ns - 1e8;
  const otherSamples = [came, made.warm + 1e9].map((t_ns) => ({ t_ns, bytes: otherBytes }));
  const rows = rowsOf({
    used: new Map([[0, made.used]]),
    recorded: made.recorded,
    processes: [
      { gpu: 0, pid: 100, samples: made.samples },
      ...(name === 'alone' ? [] : [{ gpu: 0, pid: 7, samples: otherSamples }]),
    ],
    phases: [{ label: 'timed', start_ns: made.warm, end_ns: made.plan.ended_ns }],
  });
  const before = { gpu: 0, pid: 7, name: 'python3', used_bytes: otherBytes };
  const plan = planOf({ ...made.plan, others_before: name === 'before' ? [before] : [] });
  const enginePids = ownPids(rows, plan);
  const gpus = gpusOfRun(rows, plan, enginePids);
  const points = gpuPoints(rows, plan, gpus);
  const measured = totalMeasured(rows, plan, { gpus, enginePids, points });
  const facts = { log: null, estimate: null, workload: null, pool: null, complete: true };
  const places = placesOf(rows, plan, { gpus, points, enginePids, measured, ...facts });
  const parts = breakdownOf(places, measured, null);
  const context = parts.components.find(({ component }) => component === 'cuda_context')!;
  const issues = otherIssues(rows, plan, { gpus, enginePids, points });
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
    const found = breakdown(name);
    expect(found.issues).toEqual(['gpu_shared']);
    expect(found.total_measured_bytes).toBe(2_088_763_392);
    expect(Math.abs(found.context.bytes - aloneResult.context.bytes)).toBeLessThan(10e6);
    expect(found.context.evidence[0]).toContain('its own processes as listed by the driver 2.089 GB');
    expect(found.residual_bytes).toBe(0);
    expect(found.confidence_levels.overall).toBe('high');
  },
);
