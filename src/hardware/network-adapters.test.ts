import { expect, test } from 'vitest';
import { hostNetworkLink } from './network-adapters.js';

test('sums the adapters of a host in bytes; one unknown adapter makes the sum unknown', () => {
  const eight = hostNetworkLink(Array.from({ length: 8 }, () => '15b3:1021'));
  expect(eight).toMatchObject({
    value: 400e9,
    unit: 'B/s',
    source: expect.stringContaining('8 × ConnectX-7'),
  });
  expect(hostNetworkLink(['15b3:101b', '15b3:1021']).value).toBe(75e9);
  expect(hostNetworkLink(['15b3:1021', '1d0f:efa2'])).toMatchObject({
    value: null,
    reason: { code: 'unknown_network', text: expect.stringContaining('1d0f:efa2') },
  });
  expect(hostNetworkLink([])).toMatchObject({ value: null, reason: { code: 'no_network' } });
});
