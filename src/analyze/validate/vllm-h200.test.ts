import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { estimateProfile } from './estimate-profile.js';
import { profileFieldsSchema } from './profile-fields.js';

interface Profile {
  memory_breakdown: { total_measured_bytes: number; components: { component: string; bytes: number }[] };
}

// Of the 7B's the formulas were derived, the others are predictions.
it.each(['7b-eager', '7b-graph', 'tiny-eager', 'tiny-graph'])(
  'vLLM 0.26 on an H200, %s: total within 0.5 %, each component within 10 % or 64 MiB',
  (name) => {
    const text = readFileSync(join('test', 'fixtures', 'memory-vllm-h200', `${name}.json`), 'utf8');
    const { memory_breakdown: measured } = JSON.parse(text) as Profile;
    const made = estimateProfile(profileFieldsSchema.parse(JSON.parse(text)));
    if (typeof made === 'string') throw new Error(made);
    const { lines, totalBytes } = made.estimate;
    const components = measured.components.filter(({ component }) => component !== 'residual');
    expect(components.length).toBeGreaterThanOrEqual(4);
    for (const { component, bytes } of components) {
      const ours = lines.find((line) => line.component === component)?.bytes ?? 0;
      const slack = Math.max(0.1 * bytes, 64 * 2 ** 20);
      expect(Math.abs(ours - bytes), `${component}: ${ours} against ${bytes}`).toBeLessThan(slack);
    }
    const total = measured.total_measured_bytes;
    expect(Math.abs(totalBytes / total - 1), `${totalBytes} against ${total}`).toBeLessThan(0.005);
  },
);
