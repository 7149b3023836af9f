import type { LatencyResult, MemoryResult, TelemetryResult } from '../model/documents/profile.js';
import type { TraceTimeline } from '../model/documents/trace.js';
import { figure, missing } from '../model/figure.js';
import { random, repeats, steps, sum, templates } from './test-operators.js';

export function latency(prefillMs: number, decodeMs: number): LatencyResult {
  const next = random(7);
  const per_repeat = Array.from({ length: repeats }, (_, iteration) => {
    const slow = iteration === 8 ? 1.09 : 1;
    const ttft_ms = prefillMs * slow * (0.995 + 0.01 * next());
    const tpot_ms = decodeMs * slow * (0.992 + 0.016 * next());
    const launch = Math.floor(iteration / 4);
    return { iteration, launch, ttft_ms, tpot_ms, e2e_ms: ttft_ms + steps * tpot_ms, outlier: slow > 1 };
  });
  const mean = (values: number[]): number => sum(values) / values.length;
  const spread = (value: number) => ({
    n: repeats,
    sd: value * 0.013,
    ci95: [value * 0.992, value * 1.008] as [number, number],
  });
  const ttft = mean(per_repeat.map((repeat) => repeat.ttft_ms));
  const tpot = mean(per_repeat.map((repeat) => repeat.tpot_ms));
  const e2e = mean(per_repeat.map((repeat) => repeat.e2e_ms));
  const from = 'iterations of the clean execution';
  return {
    repeats,
    launches: 3,
    warmup_repeats: 6,
    ttft_ms: figure(ttft, 'ms', from, spread(ttft)),
    tpot_ms: figure(tpot, 'ms', from, spread(tpot)),
    e2e_ms: figure(e2e, 'ms', from, spread(e2e)),
    decode_tokens_per_s: figure(1e3 / tpot, 'tok/s', from, spread(1e3 / tpot)),
    prefill_tokens_per_s: figure(128e3 / ttft, 'tok/s', from, spread(128e3 / ttft)),
    output_tokens_per_s: figure(((steps + 1) * 1e3) / e2e, 'tok/s', from, spread(32e3 / e2e)),
    per_repeat,
    decode_step_percentiles_ms: {
      p5: tpot * 0.972,
      p50: tpot * 0.996,
      p90: tpot * 1.02,
      p95: tpot * 1.043,
      p99: tpot * 1.12,
      max: tpot * 1.61,
    },
    decode_step_by_index_ms: Array.from({ length: steps }, (_, index) => tpot * (0.985 + 0.001 * index)),
  };
}

const mib = 2 ** 20;

export function memory(): MemoryResult {
  const next = random(3);
  const phases = [
    { label: 'load', start_ms: 120, end_ms: 610 },
    { label: 'warm-up', start_ms: 610, end_ms: 1710 },
    { label: 'timed repeats', start_ms: 1710, end_ms: 4010 },
    { label: 'profiled', start_ms: 4060, end_ms: 4900 },
  ];
  const valueAt = (t: number): number => {
    if (t < 120) return 61;
    if (t < 610) return 61 + ((t - 120) / 490) * 118;
    if (t < 1710) return 198 + ((t - 610) / 1100) * 9;
    return 208 + Math.sin(t / 90) * 2 + 3 * next();
  };
  const series = Array.from({ length: 250 }, (_, index) => ({
    t_ms: index * 20,
    bytes: valueAt(index * 20) * mib,
  }));
  return {
    baseline_bytes: figure(61 * mib, 'B', 'RSS before the model is loaded'),
    post_warmup_bytes: figure(207 * mib, 'B', 'RSS after the last warm-up repeat'),
    peak_bytes: figure(214 * mib, 'B', '/proc/<pid>/status VmHWM'),
    breakdown: [
      { component: 'weights', bytes: 92 * mib, confidence: 'high', evidence: 'size of model.onnx' },
      {
        component: 'kv_cache',
        bytes: 1.25 * mib,
        confidence: 'high',
        evidence: '2 × 8 layers × 160 tokens × 256 × 4 B',
      },
      {
        component: 'activations',
        bytes: 9 * mib,
        confidence: 'medium',
        evidence: 'largest live set at prefill, model arithmetic',
      },
      {
        component: 'runtime',
        bytes: 61 * mib,
        confidence: 'high',
        evidence: 'baseline: Node and onnxruntime before the model',
      },
      { component: 'residual', bytes: 50.75 * mib, confidence: 'medium', evidence: 'peak − the rest' },
    ],
    series,
    marks: [
      { t_ms: 100, point: 'baseline', bytes: 61 * mib },
      { t_ms: 1700, point: 'post_warmup', bytes: 207 * mib },
      { t_ms: 3140, point: 'peak', bytes: 214 * mib },
    ],
    phases,
  };
}

export function telemetry(): TelemetryResult {
  const next = random(11);
  const line = (scope: string, metric: string, unit: string, value: number, noise: number) => ({
    scope,
    metric,
    unit,
    points: Array.from({ length: 100 }, (_, index): [number, number] => [
      index * 50,
      Math.max(0, value + noise * (next() - 0.5)),
    ]),
  });
  return {
    sample_hz: figure(20, 'Hz', 'telemetry sampler'),
    cpu_percent: figure(99.1, '%', 'telemetry, process'),
    other_processes_cpu_percent: figure(2.3, '%', 'telemetry, host less process'),
    clock_mhz: missing('never_busy', 'this virtual machine shows no core clock'),
    series: [
      line('process', 'utilization_percent', '%', 99, 3),
      line('cpu0', 'utilization_percent', '%', 97, 6),
      line('cpu1', 'utilization_percent', '%', 4, 8),
      line('process', 'rss_bytes', 'B', 205 * mib, 4 * mib),
    ],
  };
}

export function timeline(): TraceTimeline {
  const next = random(5);
  const stages: TraceTimeline['stages'] = [];
  const events: TraceTimeline['events'] = [];
  const names = templates.map(({ name }) => name);
  let now = 0;
  for (const [index, kind] of (['prefill', 'decode', 'decode', 'decode', 'decode'] as const).entries()) {
    const prefill = kind === 'prefill';
    const start_ns = now;
    now += prefill ? 150e3 : 40e3;
    for (const [name, template] of templates.entries()) {
      const dur_ns = 1e3 * (prefill ? template.prefill_us : template.decode_us) * (0.96 + 0.08 * next());
      events.push({ lane: 0, name, class: template.class, start_ns: now, dur_ns });
      now += dur_ns + (prefill ? 2.1e3 : 1.1e3);
    }
    now += prefill ? 160e3 : 40e3;
    const label = prefill ? 'prefill' : `decode ${index}`;
    stages.push({ kind, label, depth: 0, start_ns, dur_ns: now - start_ns });
    stages.push({ kind: 'sampling', label: 'sampling', depth: 0, start_ns: now, dur_ns: 20e3 });
    now += 30e3;
  }
  return {
    origin_ns: 0,
    dur_ns: now,
    dropped: 0,
    stages,
    lanes: [{ label: 'operators, thread 1', what: 'operators' }],
    names,
    events,
    density: { start_ns: 0, bin_ns: 1, classes: [], phases: [] },
  };
}
