import type { IssueCode } from '../model/issue-codes.js';
import { document, type Document } from '../model/document.js';
import { type ProfileResult, profileVersion, type StageResult } from '../model/documents/profile.js';
import { figure, missing } from '../model/figure.js';
import { layers, repeats } from './test-operators.js';
import { testRoofline } from './test-roofline.js';
import { latency, memory, telemetry, timeline } from './test-series.js';
import { stage } from './test-stages.js';

/**
 * A profile document as `inferscope profile` writes it, for view tests: a 24 M Llama on one core. Times are drawn from a seeded generator;
 * sums (operators + gaps = stage, bars = measured) hold by construction.
 */
export function testProfile(): Document<ProfileResult> {
  const prefill = stage('prefill', 0.12);
  const decode = stage('decode', 0.06);
  const sampling: StageResult = {
    ...stage('decode', 0.06),
    kind: 'sampling',
    duration_ms: figure(0.021, 'ms', 'stages of the clean execution', {
      n: repeats,
      sd: 0.001,
      ci95: [0.02, 0.022],
    }),
    breakdown: null,
    bound: null,
    bandwidth_level: null,
  };
  const none = missing('host_stage', 'sampling is a scan over the logits, not a model operation');
  for (const key of [
    'tokens_per_s',
    'profiled_ms',
    'profiler_overhead_ms',
    'flops',
    'bytes',
    'mfu',
    'mbu',
  ] as const) {
    sampling[key] = none;
  }
  for (const key of [
    'intensity_flop_per_byte',
    'working_set_bytes',
    'bandwidth_bytes_per_s',
    'roofline_ms',
  ] as const) {
    sampling[key] = none;
  }
  const data: ProfileResult = {
    session: {
      id: '20261120-221503-llama-24m',
      title: 'llama-24m float32, onnxruntime CPU, batch 1, 128 → 32',
      started_at: '2026-11-20T22:15:03.120Z',
      status: 'complete',
    },
    workload: {
      model: {
        name: 'llama-24m',
        config: { model_type: 'llama', hidden_size: 512, num_hidden_layers: layers },
        dtype: 'float32',
        quantization: null,
        weights: 'random',
        num_parameters: 24_126_976,
        weight_bytes: 96_507_904,
      },
      engine: { name: 'onnxruntime', version: '1.30.0', options: { graph_optimization: 'all' } },
      device: 'cpu',
      threads: 1,
      batch_size: 1,
      input_len: 128,
      output_len: 32,
      tensor_parallel_size: 1,
    },
    latency: latency(prefill.duration_ms.value ?? 0, decode.duration_ms.value ?? 0),
    stages: [prefill, decode, sampling],
    memory: memory(),
    telemetry: telemetry(),
    timeline: timeline(),
    roofline: testRoofline(),
    environment: [
      { id: 'cpu', label: 'CPU', value: 'Intel(R) Xeon(R) Processor @ 2.60GHz, 2 cores, AVX-512' },
      { id: 'l3', label: 'Last-level cache', value: '200 MiB' },
      { id: 'memory', label: 'Memory', value: '23.4 GiB' },
      { id: 'os', label: 'System', value: 'Linux 6.1, Debian GNU/Linux 12' },
      { id: 'node', label: 'Node', value: '20.20.2' },
    ],
  };
  return document('profile', profileVersion, data, [
    {
      code: 'warmup_unstable',
      severity: 'warning',
      text: '1 of 12 repeats lies more than 3 MAD from the median; it is kept in every figure.',
      count: 1,
    },
    {
      code: 'clock_unreadable',
      severity: 'info',
      text: 'The core clock could not be read: no cpufreq on this machine.',
    },
  ]);
}

/** The same session with only latencies: every optional part is missing. */
export function bareProfile(): Document<ProfileResult> {
  const { data } = testProfile();
  const none = missing('no_roofline', 'no roofline was measured on this machine');
  return document(
    'profile',
    profileVersion,
    {
      ...data,
      stages: data.stages.slice(0, 2).map((stage) => ({
        ...stage,
        mfu: none,
        mbu: none,
        roofline_ms: none,
        bandwidth_bytes_per_s: none,
        bandwidth_level: null,
        bound: null,
        breakdown: null,
      })),
      memory: null,
      telemetry: null,
      timeline: null,
      roofline: null,
    },
    [
      {
        code: 'trace_unreadable',
        severity: 'warning',
        text: 'The operator trace was cut off; no operator is shown.',
      },
    ],
  );
}

/** Text that would execute, break out of an attribute or end the data block if it were not escaped. */
export const hostileText =
  '</script><script>globalThis.pwned=1</script><!--<img src=x onerror=globalThis.pwned=1>"\'\u2028\u2029';

/** The session of a model with {@link hostileText} in all of its names. */
export function hostileProfile(): Document<ProfileResult> {
  const { data } = testProfile();
  const name = `m ${hostileText}`;
  data.session.title = name;
  if (data.workload.model) {
    data.workload.model.name = name;
    data.workload.model.config = { [name]: name };
  }
  data.workload.engine.name = name;
  data.timeline?.names.fill(name);
  for (const operator of data.stages.flatMap(({ breakdown }) => breakdown?.top_operators ?? [])) {
    operator.name = name;
    operator.input_shapes = name;
  }
  for (const phase of data.memory?.phases ?? []) phase.label = name;
  for (const series of data.telemetry?.series ?? []) series.scope = name;
  for (const fact of data.environment) fact.value = name;
  return document('profile', profileVersion, data, [
    { code: name as IssueCode, severity: 'error', text: name },
  ]);
}
