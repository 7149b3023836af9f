import { expect, test } from 'vitest';
import { rooflineDocumentSchema } from '../../src/model/documents/roofline.js';
import { testFolder } from '../../src/session/test-folder.js';
import {
  expectFailure,
  inferscope,
  profileJson,
  tinyProfileArgs,
  createSetup,
  widestLine,
} from './run-cli.js';

// A home without a planted roofline, so that one is measured.
const scratch = testFolder();
const setup = { ...createSetup(), scratch, home: `${scratch}/home` };

test('the roofline is measured once, cached, and used by a profile', () => {
  const first = inferscope(setup, ['roofline', '--threads', '1', '--json']);
  expect(first.status).toBe(0);
  const measured = rooflineDocumentSchema.parse(JSON.parse(first.stdout)).data;
  expect(measured).toMatchObject({ cached: false, age_s: 0, roofline: { threads: 1 } });
  const { compute, bandwidth, ridge_flop_per_byte: ridge, weight_streams: streams } = measured.roofline!;
  expect(compute.map((peak) => peak.dtype)).toEqual(['float32', 'int8']);
  // Loose bounds for any CPU core.
  for (const peak of compute) {
    expect(peak.flops_per_s).toBeGreaterThan(1e9);
    expect(peak.flops_per_s).toBeLessThan(1e13);
  }
  for (const point of bandwidth) {
    expect(point.bytes_per_s).toBeGreaterThan(0.5e9);
    expect(point.bytes_per_s).toBeLessThan(1e12);
  }
  const sizes = bandwidth.map((point) => point.working_set_bytes);
  expect(sizes).toEqual([...sizes].sort((x, y) => x - y));
  expect(ridge).toBeCloseTo(compute[0]!.flops_per_s / bandwidth.at(-1)!.bytes_per_s, 9);
  expect(new Set(streams.map((stream) => stream.format))).toEqual(new Set(['float32', 'int4']));

  const again = inferscope(setup, ['roofline', '--threads', '1', '--json']);
  const cached = rooflineDocumentSchema.parse(JSON.parse(again.stdout)).data;
  expect(cached).toMatchObject({ cached: true, roofline: measured.roofline });

  const { stdout } = inferscope(setup, ['roofline', '--threads', '1']);
  expect(stdout).toContain('ridge point');
  expect(stdout).not.toContain('\u001B[');
  expect(widestLine(stdout)).toBeLessThanOrEqual(80);

  const profile = profileJson(setup, tinyProfileArgs(setup));
  expect(profile.data.roofline).toEqual(measured.roofline);
});

test('rejects an impossible thread count', () => {
  expectFailure(inferscope(setup, ['roofline', '--threads', '0', '--json']), 2, 'E_USAGE');
});

test('rejects --device cuda without PyTorch, and options of the other device', () => {
  const cuda = inferscope(setup, ['roofline', '--device', 'cuda', '--python', '/nowhere/python3', '--json']);
  expectFailure(cuda, 3, 'E_ENGINE_MISSING');
  expectFailure(
    inferscope(setup, ['roofline', '--device', 'cuda', '--threads', '2', '--json']),
    2,
    'E_USAGE',
  );
  expectFailure(inferscope(setup, ['roofline', '--device', 'cpu', '--record', '--json']), 2, 'E_USAGE');
  expectFailure(inferscope(setup, ['roofline', '--device', 'tpu', '--json']), 2, 'E_USAGE');
});
