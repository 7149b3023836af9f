import { expect, test } from 'vitest';
import { Lane } from './lane.js';
import { selection } from './selection.js';
import type { Timeline } from './timeline.js';

test('names that are not listed are summed, not dropped', () => {
  const lane = new Lane();
  for (let i = 0; i < 60; i++) lane.push(100 * i, 100 * i + 60 - i, 0, i);
  const track = { table: 'kernels', rank: null, device: 0, lanes: [lane] };
  const timeline = {
    from: 0,
    to: 6000,
    tracks: [track],
    names: Array.from({ length: 60 }, (_, i) => `void kernel ${i}()`),
    labels: Array.from({ length: 60 }, (_, i) => `kernel ${i}`),
  } as unknown as Timeline;
  const [group] = selection(timeline, { kernels: ['gemm'] }, 0, 6000).groups;
  expect(group!.names).toHaveLength(50);
  expect(group!.names[0]).toMatchObject({
    name: 'void kernel 0()',
    label: 'kernel 0',
    ns: 60,
    share: '1.0 %',
  });
  // The ten shortest: 10 + 9 + … + 1 ns.
  expect(group!.others).toEqual({ names: 10, count: 10, text: '55 ns', share: '0.9 %' });
  expect(selection(timeline, { kernels: ['gemm'] }, 0, 4900).groups[0]!.others).toBeNull();
});
