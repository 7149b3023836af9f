import type { SweepResult, SweepRun } from '../model/documents/sweep.js';
import { hostileText } from './test-profile.js';

function run(number: number, batch: number, input: number, change: Partial<SweepRun> = {}): SweepRun {
  const peak = 14 + batch * input * 0.001;
  return {
    number,
    key: String(number).padStart(16, '0'),
    label: `llama-2-7b batch ${batch} ${input}→128`,
    arguments: ['memory', '--model', 'llama-2-7b', '--batch-size', String(batch)],
    parameters: { model_id: 'llama-2-7b', input_length: input, output_length: 128, batch_size: batch },
    output: `memory-profiles/llama-2-7b-profile_s-00${number}.json`,
    outcome: 'measured',
    attempts: 1,
    started_at: '2026-11-21T12:00:00.000Z',
    duration_s: 60,
    exit_code: 0,
    pid: null,
    job: null,
    failure: null,
    session_id: `20261121-12000${number}-memory`,
    log: 'sweep-s/run-001.stderr.log',
    figures: [
      {
        label: null,
        values: {
          peak_gb: peak,
          kv_cache_gb: null,
          mean_latency_ms: 100 * batch,
          tokens_per_second: 64 * batch,
        },
      },
    ],
    issues: [],
    expected: {
      seconds: 50,
      basis: 'engine startup only',
      memory_bytes: peak * 1e9,
      capacity_bytes: 24e9,
      fits: peak < 24,
      why: 'inferscope estimate',
    },
    ...change,
  };
}

/** Batch 1 and 16 × two contexts: 14.5, 15 and 22 GB, and one run out of memory. */
export function testSweep(): SweepResult {
  return {
    name: null,
    stamp: '20261121-120000',
    kind: 'memory',
    status: 'complete',
    started_at: '2026-11-21T12:00:00.000Z',
    ended_at: '2026-11-21T12:04:00.000Z',
    command: ['inferscope', 'sweep', '--config', 'models.yaml'],
    working_directory: '.',
    varied: ['input_length', 'batch_size'],
    config: null,
    protocol: { timeout_s: 3600, retries: 1, min_free_bytes: 2 ** 30 },
    process: null,
    runs: [
      run(1, 1, 500),
      run(2, 16, 500),
      run(3, 1, 1000),
      run(4, 16, 1000, {
        outcome: 'failed',
        figures: [],
        session_id: null,
        exit_code: 4,
        attempts: 2,
        failure: {
          code: 'E_OUT_OF_MEMORY',
          what: `CUDA out of memory ${hostileText}`,
          why: 'It asked for 30 GB; the GPU has 24.',
          fix: 'Use a smaller --batch-size.',
          infrastructure: false,
        },
        issues: [{ code: 'gpu_memory_not_cleared', severity: 'warning', text: 'gpu0 held 1 GiB more.' }],
      }),
    ],
  };
}
