import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type ProfileFields, profileFieldsSchema } from './profile-fields.js';
import { validateOne, readProfile } from './test-profiles.js';

describe('an inconsistent measurement', () => {
  const rejectionOf = (edit: (profile: ProfileFields) => void): string => {
    const profile = structuredClone(readProfile('llama-2-7b-float16'));
    edit(profile);
    const [row] = validateOne(profile).profiles;
    expect(row!.status).toBe('rejected');
    return row!.reasons.join(' ');
  };

  it('is rejected with the reason', () => {
    const below = rejectionOf(({ memory_breakdown: parts }) => {
      parts.total_measured_bytes = 3e9;
      parts.components = null;
      parts.residual_bytes = null;
    });
    expect(below).toContain('below the weights (13.48 GB)');
    const exited = rejectionOf(({ memory_measurements: points }) => {
      points.peak.total_bytes = 0;
      points.baseline!.total_bytes = 0;
    });
    expect(exited).toContain('after the process had exited');
    const idle = rejectionOf((profile) => {
      profile.engine_metadata!.engine_type = 'vllm';
    });
    // 0.9 of 150.75 GB, but 16.4 GB were measured.
    expect(idle).toContain('A live vllm fills its share of the GPUs (135.7 GB');
    const units = rejectionOf(({ memory_measurements: { peak } }) => {
      peak.per_gpu_details![0]!.used_bytes = 200e9;
    });
    expect(units).toContain('units are wrong');
    const sum = rejectionOf(({ memory_breakdown: parts }) => {
      parts.components![0]!.bytes += 1e9;
    });
    expect(sum).toContain('sum to');
    const withOthers = rejectionOf(({ metadata }) => {
      metadata!.issues = [{ code: 'gpu_shared', text: 'gpu0 was also used by x.' }];
    });
    expect(withOthers).toContain('gpu0 was also used by x.');
    const divided = rejectionOf((profile) => {
      profile.model_info.tensor_parallel_size = 2;
      profile.memory_breakdown.components![0]!.bytes /= 2;
    });
    expect(divided).toContain('those of one of 2 GPUs');
    expect(rejectionOf(({ metadata }) => (metadata!.sampling!.samples = 1))).toContain('1 samples');
    expect(validateOne(readProfile('llama-3.1-8b-float32-oom')).profiles[0]!.reasons[0]).toContain(
      'stopped early',
    );
  });

  it('is rejected if components include memory of other processes', () => {
    const path = join('test', 'fixtures', 'memory-another-process-h200', 'joined.json');
    const [row] = validateOne(profileFieldsSchema.parse(JSON.parse(readFileSync(path, 'utf8')))).profiles;
    expect(row).toMatchObject({ status: 'rejected', total: null });
    expect(row!.reasons.join()).toContain('is more than the total of 2.089 GB');
  });

  it('is rejected if a part exceeds the total, or weights are twice the possible size', () => {
    const part = rejectionOf(({ memory_breakdown: parts }) => {
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
    const weights = rejectionOf(({ memory_breakdown: parts }) => {
      const weights = parts.components!.find(({ component }) => component === 'model_weights')!;
      const added = weights.bytes;
      weights.bytes *= 2;
      parts.total_measured_bytes! += added;
    });
    expect(weights).toContain('2.00× those of the model');
  });

  it('has lower confidence and named dimensions if dimensions contradict each other', () => {
    const profile = structuredClone(readProfile('llama-2-7b-float16'));
    profile.model_info.num_layers = 40;
    const [row] = validateOne(profile).profiles;
    expect(row!.reasons.join()).toContain('It states 40 layers, its config 32');
    expect(new Set(row!.components.map((component) => component.estimate_confidence))).toEqual(
      new Set(['low']),
    );
  });

  it('is skipped for an unknown model', () => {
    const profile = readProfile('llama-2-7b-float16');
    const otherEngine = { ...profile, engine_metadata: { engine_type: 'tensorrt-llm' } };
    expect(validateOne(otherEngine).profiles[0]).toMatchObject({ status: 'skipped' });
    const unknown = { ...profile, model_info: { ...profile.model_info, name: 'mine', config: null } };
    unknown.metadata!.config!.model = 'mine';
    expect(validateOne(unknown).profiles[0]!.reasons[0]).toContain('mine is not a preset');
    expect(validateOne(unknown).result).toBe('nothing_compared');
    const served = readProfile('llama-2-7b-float16');
    served.metadata!.where = 'url';
    expect(validateOne(served).profiles[0]).toMatchObject({ status: 'skipped' });
    expect(validateOne(served).profiles[0]!.reasons[0]).toContain('a server that was already running');
  });
});
