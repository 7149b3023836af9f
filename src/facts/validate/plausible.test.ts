import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type ProfileFields, profileFieldsSchema } from './profile-fields.js';
import { validated, read } from './test-profiles.js';

describe('an inconsistent measurement', () => {
  const change = (edit: (profile: ProfileFields) => void): string => {
    const profile = structuredClone(read('llama-2-7b-float16'));
    edit(profile);
    const [row] = validated(profile).profiles;
    expect(row!.status).toBe('rejected');
    return row!.reasons.join(' ');
  };

  it('is rejected with the reason', () => {
    const below = change(({ memory_breakdown: parts }) => {
      parts.total_measured_bytes = 3e9;
      parts.components = null;
      parts.residual_bytes = null;
    });
    expect(below).toContain('below the weights (13.48 GB)');
    const exited = change(({ memory_measurements: points }) => {
      points.peak.total_bytes = 0;
      points.baseline!.total_bytes = 0;
    });
    expect(exited).toContain('after the process had exited');
    const idle = change((profile) => {
      profile.engine_metadata!.engine_type = 'vllm';
    });
    // 0.9 of 150.75 GB, but 16.4 GB were measured.
    expect(idle).toContain('A live vllm fills its share of the GPUs (135.7 GB');
    const units = change(({ memory_measurements: { peak } }) => {
      peak.per_gpu_details![0]!.used_bytes = 200e9;
    });
    expect(units).toContain('units are wrong');
    const sum = change(({ memory_breakdown: parts }) => {
      parts.components![0]!.bytes += 1e9;
    });
    expect(sum).toContain('sum to');
    const withOthers = change(({ metadata }) => {
      metadata!.issues = [{ code: 'gpu_shared', text: 'gpu0 was also used by x.' }];
    });
    expect(withOthers).toContain('gpu0 was also used by x.');
    const divided = change((profile) => {
      profile.model_info.tensor_parallel_size = 2;
      profile.memory_breakdown.components![0]!.bytes /= 2;
    });
    expect(divided).toContain('those of one of 2 GPUs');
    expect(change(({ metadata }) => (metadata!.sampling!.samples = 1))).toContain('1 samples');
    expect(validated(read('llama-3.1-8b-float32-oom')).profiles[0]!.reasons[0]).toContain('stopped early');
  });

  it('is rejected if components include memory of other processes', () => {
    const path = join('test', 'fixtures', 'memory-another-process-h200', 'joined.json');
    const [row] = validated(profileFieldsSchema.parse(JSON.parse(readFileSync(path, 'utf8')))).profiles;
    expect(row).toMatchObject({ status: 'rejected', total: null });
    expect(row!.reasons.join()).toContain('is more than the total of 2.089 GB');
  });

  it('is rejected if a part exceeds the total, or weights are twice the possible size', () => {
    const part = change(({ memory_breakdown: parts }) => {
      const total = parts.total_measured_bytes!;
      parts.components![2]!.bytes = 2 * total;
      parts.residual_bytes =
        total -
        parts.components!.reduce(
          (sum, { component, bytes }) => sum + (component === 'residual' ? 0 : bytes),
          0,
        );
      for (const component of parts.components!)
        if (component.component === 'residual') component.bytes = parts.residual_bytes;
    });
    expect(part).toContain('is more than the total');
    const weights = change(({ memory_breakdown: parts }) => {
      const weights = parts.components!.find(({ component }) => component === 'model_weights')!;
      const added = weights.bytes;
      weights.bytes *= 2;
      parts.total_measured_bytes! += added;
    });
    expect(weights).toContain('2.00× those of the model');
  });

  it('has lower confidence and named dimensions if dimensions contradict each other', () => {
    const profile = structuredClone(read('llama-2-7b-float16'));
    profile.model_info.num_layers = 40;
    const [row] = validated(profile).profiles;
    expect(row!.reasons.join()).toContain('It states 40 layers, its config 32');
    expect(new Set(row!.components.map((component) => component.estimate_confidence))).toEqual(
      new Set(['low']),
    );
  });

  it('is skipped for an unknown model', () => {
    const profile = read('llama-2-7b-float16');
    const otherEngine = { ...profile, engine_metadata: { engine_type: 'tensorrt-llm' } };
    expect(validated(otherEngine).profiles[0]).toMatchObject({ status: 'skipped' });
    const unknown = { ...profile, model_info: { ...profile.model_info, name: 'mine', config: null } };
    unknown.metadata!.config!.model = 'mine';
    expect(validated(unknown).profiles[0]!.reasons[0]).toContain('mine is not a preset');
    expect(validated(unknown).result).toBe('nothing_compared');
    const served = read('llama-2-7b-float16');
    served.metadata!.where = 'url';
    expect(validated(served).profiles[0]).toMatchObject({ status: 'skipped' });
    expect(validated(served).profiles[0]!.reasons[0]).toContain('a server that was already running');
  });
});
