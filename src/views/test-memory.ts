import { document, type Document } from '../model/document.js';
import type { MemoryPoint } from '../model/documents/memory-profile.js';
import type { MemoryResult } from '../model/documents/memory-result.js';
import { hostileText } from './test-profile.js';

const capacity = 80e9;

function point(t_s: number, used: [number, number]): MemoryPoint {
  const [a, b] = used;
  const mean = (a + b) / 2;
  return {
    total_gb: (a + b) / 1e9,
    total_bytes: a + b,
    max_gb: Math.max(a, b) / 1e9,
    mean_gb: mean / 1e9,
    stddev_gb: Math.abs(a - b) / 2e9,
    per_gpu_details: used.map((bytes, gpu) => ({
      gpu,
      name: 'NVIDIA H100',
      used_gb: bytes / 1e9,
      used_bytes: bytes,
      total_gb: capacity / 1e9,
      total_bytes: capacity,
    })),
    t_s,
    source: 'NVML device',
  };
}

const moment = (
  gpu: number,
  stage: string,
  t_s: number,
  allocated: number,
  kv: number,
  reserved: number,
) => ({
  gpu,
  rank: gpu,
  stage,
  t_s,
  allocated_bytes: allocated - 0.2e9,
  reserved_bytes: reserved,
  max_allocated_bytes: allocated,
  weights_bytes: 7e9,
  kv_cache_bytes: kv,
  other_bytes: allocated - 7e9 - kv,
});

/** Llama-2-7B over two GPUs with round figures: 7 GB of weights on each, a snapshot, and a last sample after the memory was freed. */
export function testMemory(): Document<MemoryResult> {
  const ramp = (gpu: number) =>
    [0.5, 0.5, 4, 8, 8.5, 9.5, 9.5, 10 + gpu, 10 + gpu, 0.6].map((gb, t_s) => ({ t_s, bytes: gb * 1e9 }));
  const result: MemoryResult = {
    session: {
      id: '20261121-120000-memory-llama-2-7b',
      name: null,
      title: `memory · llama-2-7b ${hostileText}`,
      started_at: '2026-11-21T12:00:00.000Z',
      status: 'complete',
    },
    profile: {
      profiler_version: '2.0',
      schema_version: '2.0',
      units: { gb: '10^9 bytes' },
      metadata: {
        timestamp: '2026-11-21T12:00:00.000Z',
        session_id: '20261121-120000-memory-llama-2-7b',
        config: {
          model: 'llama-2-7b',
          input_len: 512,
          output_len: 128,
          batch_size: 4,
          dtype: 'float16',
          quantization: null,
          kv_cache_dtype: null,
          tensor_parallel_size: 2,
          gpu_memory_utilization: 0.9,
          max_model_len: null,
        },
        where: 'host',
        container_name: null,
        status: 'measured',
        duration_s: 9,
        sampling: { source: 'NVML', samples: 180, hz: 20 },
        gpus: [0, 1].map((gpu) => ({ gpu, name: 'NVIDIA H100', total_bytes: capacity })),
        issues: [{ code: 'no_breakdown', text: `No allocator reported a breakdown ${hostileText}.` }],
      },
      model_info: {
        name: 'llama-2-7b',
        num_parameters: 6_738_415_616,
        num_layers: 32,
        dtype: 'float16',
        dtypes: { weights: 'float16', activations: 'float16', kv_cache: 'float16' },
        num_heads: 32,
        num_kv_heads: 32,
        head_dim: 128,
        hidden_size: 4096,
        quantization: null,
        tensor_parallel_size: 2,
        sources: { num_layers: 'config', num_kv_heads: 'flag' },
        family: 'llama',
      },
      memory_measurements: {
        baseline: point(0, [0.5e9, 0.5e9]),
        post_warmup: point(6, [9.5e9, 9.5e9]),
        peak: point(7, [10e9, 11e9]),
        memory_increase_gb: 20,
        memory_increase_bytes: 20e9,
        warmup_increase_gb: 18,
        warmup_increase_bytes: 18e9,
        growth_gb: 2,
        growth_bytes: 2e9,
      },
      memory_breakdown: {
        total_measured_gb: 20,
        total_measured_bytes: 20e9,
        model_weights_gb: 14,
        kv_cache_gb: 2.5,
        activations_gb: 2,
        framework_overhead_gb: null,
        residual_gb: -0.5,
        residual_bytes: -0.5e9,
        confidence_levels: {
          overall: 'medium',
          weights: 'high',
          kv_cache: 'high',
          activations: 'medium',
          framework_overhead: 'unknown',
        },
        components: [
          component('model_weights', 14e9, 'high', 13.48e9),
          component('kv_cache', 2.5e9, 'high', 2.5e9),
          component('activations', 2e9, 'medium', 1e9),
          component('cuda_context', 2e9, 'low', null),
          component('residual', -0.5e9, 'low', null),
        ],
      },
      latency_stats: {
        mean_latency_ms: 4000,
        tokens_per_second: 128,
        mean_ttft_ms: 200,
        mean_tpot_ms: 29.9,
        runs: 3,
      },
      engine_metadata: { engine_version: '4.57.1', engine_type: 'transformers' },
      missing: { 'memory_breakdown.framework_overhead_gb': 'the allocator does not report it separately' },
    },
    timeline: {
      series: [0, 1].map((gpu) => ({
        label: `GPU ${gpu}`,
        gpu,
        kind: 'used' as const,
        source: 'NVML',
        points: ramp(gpu),
      })),
      marks: [
        { point: 'baseline', t_s: 0, bytes: 1e9 },
        { point: 'post_warmup', t_s: 6, bytes: 19e9 },
        { point: 'peak', t_s: 7, bytes: 21e9 },
      ],
      phases: [
        { label: 'load', start_s: 1, end_s: 4 },
        { label: 'warm-up', start_s: 4, end_s: 6 },
        { label: 'timed', start_s: 6, end_s: 8 },
      ],
    },
    allocator: [0, 1].flatMap((gpu) => [
      moment(gpu, 'load', 4, 7.2e9, 0, 7.5e9),
      moment(gpu, 'post_warmup', 6, 8.5e9, 1.25e9, 9e9),
      moment(gpu, 'end', 8, 9e9, 1.25e9, 10e9),
    ]),
    fragmentation: [0, 1].map((gpu) => ({
      gpu,
      reserved_bytes: 10e9,
      max_allocated_bytes: 9e9,
      unused_share: 0.1,
      inactive_split_bytes: 0.25e9,
    })),
    allocations: [
      {
        gpu: 0,
        stage: 'prefill',
        operator: `/venv/transformers/modeling_llama.py:182 forward ${hostileText}`,
        bytes: 1.5e9,
        blocks: 32,
      },
      {
        gpu: 0,
        stage: 'prefill',
        operator: '/venv/torch/nn/functional.py:2100 silu',
        bytes: 0.25e9,
        blocks: null,
      },
    ],
  };
  return document('memory', '1.0', result, [
    { code: 'no_breakdown', severity: 'warning', text: `No allocator reported a breakdown ${hostileText}.` },
  ]);
}

function component(
  name: MemoryResult['profile']['memory_breakdown']['components'][number]['component'],
  bytes: number,
  confidence: 'high' | 'medium' | 'low',
  estimate_bytes: number | null,
) {
  return {
    component: name,
    bytes,
    gb: bytes / 1e9,
    confidence,
    evidence: [`evidence of ${name}`],
    estimate_bytes,
  };
}
