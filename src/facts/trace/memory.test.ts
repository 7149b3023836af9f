import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { traceDocumentSchema } from '../../model/documents/trace.js';
import { pageOfView } from '../../render/html/view.js';
import { testHome } from '../../session/test-folder.js';
import { capturesView } from '../../views/captures.js';
import { sessionOf, kernel, stage, us } from './test-hand.js';
import { fixture, imported } from './test-import.js';
import { analyzeTrace } from './trace.js';

interface MemoryEvent {
  name: string;
  ts: number;
  args: { 'Device Type'?: number; 'Total Allocated'?: number; 'Total Reserved'?: number };
}

test('an H200 under torch with profile_memory: peaks equal the raw events, and the page shows them', async () => {
  const path = fixture('kineto-torch2.11-h200/kineto-tiny.json.gz');
  const { traceEvents } = JSON.parse(gunzipSync(readFileSync(path)).toString()) as {
    traceEvents: MemoryEvent[];
  };
  const raw = traceEvents.filter(({ name, args }) => name === '[memory]' && args['Device Type'] === 1);
  const peakOf = (key: 'Total Allocated' | 'Total Reserved') =>
    raw.reduce((high, { args }) => Math.max(high, args[key] ?? 0), 0);
  expect(raw.length).toBeGreaterThan(100);

  const session = await imported(testHome(), 'kineto', path);
  const trace = await analyzeTrace(session);
  traceDocumentSchema.parse(trace);
  const memory = trace.data.memory!;
  expect(memory).toMatchObject({
    capture_id: 'kineto',
    device: 0,
    source: 'torch CUDA caching allocator',
    max_reserved_bytes: peakOf('Total Reserved'),
    peak: { allocated_bytes: peakOf('Total Allocated') },
  });
  expect(memory.unused_share).toBeCloseTo(1 - peakOf('Total Allocated') / peakOf('Total Reserved'), 9);
  expect(memory.allocated.length).toBeLessThanOrEqual(1001);
  const sessionInfo = { id: 'memory', kind: 'import', title: 'memory', started_at: '' };
  const view = capturesView({ session: sessionInfo, trace, counters: null, gemms: null });
  const page = pageOfView(view, { clientScript: '' });
  expect(page).toContain('data-chart="lines"');
  expect(page).toContain('Operators by memory allocated by their own code');
});

test('reads only the analyzed device, with the phase of the peak; null without records', async () => {
  const rows = {
    stages: [stage(1, 'prefill', 0, 100), stage(2, 'decode', 100, 200)],
    kernels: [kernel(1, 10, 50), kernel(2, 110, 50)],
  };
  const reading = (t: number, kind: string, bytes: number, device = 0) => ({
    t_ns: t * us,
    kind,
    bytes,
    device,
    source: 'torch CUDA caching allocator',
  });
  const session = await sessionOf({
    ...rows,
    memory: [
      reading(20, 'allocated', 100),
      reading(20, 'reserved', 400),
      reading(120, 'allocated', 300),
      reading(150, 'allocated', 200),
      reading(130, 'allocated', 9000, 1),
    ],
  });
  const { memory } = (await analyzeTrace(session)).data;
  expect(memory).toEqual({
    capture_id: 'nsys',
    device: 0,
    source: 'torch CUDA caching allocator',
    allocated: [
      [20 * us, 100],
      [120 * us, 300],
      [150 * us, 200],
    ],
    reserved: [[20 * us, 400]],
    peak: { t_ns: 120 * us, allocated_bytes: 300, phase: 'decode' },
    max_reserved_bytes: 400,
    unused_share: 0.25,
  });
  expect((await analyzeTrace(await sessionOf(rows))).data.memory).toBeNull();
});
