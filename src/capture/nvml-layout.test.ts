import { expect, test } from 'vitest';
import { Words } from './nvml-calls.js';
import { counterRate, processList } from './nvml-details.js';
import { FieldValues } from './nvml-fields.js';

/** Layouts of nvml.h, filled as the driver does. */

test('nvmlFieldValue_t: 40 bytes, value and return code by type', () => {
  const fields = new FieldValues([
    [186, 0],
    [197, 0],
    [138, 0xffffffff],
  ]);
  const view = new DataView(fields.request().buffer);
  expect([view.getUint32(0, true), view.getUint32(40, true), view.getUint32(84, true)]).toEqual([
    186, 197, 0xffffffff,
  ]);
  view.setUint32(24, 1, true); // NVML_VALUE_TYPE_UNSIGNED_INT
  view.setUint32(32, 79_071, true);
  view.setUint32(40 + 24, 3, true); // …UNSIGNED_LONG_LONG
  view.setBigUint64(40 + 32, 2n ** 40n, true);
  view.setUint32(80 + 28, 3, true); // NVML_ERROR_NOT_SUPPORTED
  expect(fields.at(0)).toEqual({ value: 79_071, bits: 32 });
  expect(fields.at(1)).toEqual({ value: 2 ** 40, bits: 64 });
  expect(fields.at(2)).toEqual({ value: null, code: 3 });
});

test('nvmlProcessInfo_t: 24 bytes; a process with two contexts is listed once, unreported memory is null', () => {
  const words = new Words(4 * 24);
  const view = new DataView(words.bytes.buffer);
  const put = (offset: number, pid: number, used: bigint) => {
    view.setUint32(offset * 24, pid, true);
    view.setBigUint64(offset * 24 + 8, used, true);
  };
  put(0, 10, 100n);
  put(1, 11, 2n ** 64n - 1n); // NVML_VALUE_NOT_AVAILABLE
  put(2, 10, 50n);
  expect(processList(words, 3)).toEqual([
    { pid: 10, usedBytes: 150 },
    { pid: 11, usedBytes: null },
  ]);
});

test('a counter gives a rate from its second reading on, and restarts if it decreases', () => {
  const rate = counterRate(1024);
  expect(rate(1000, 0)).toBeNull();
  // 2000 KiB in half a second
  expect(rate(3000, 5e8)).toBeCloseTo((2000 * 1024) / 0.5 / 1e6, 9);
  expect(rate(10, 1e9)).toBeNull();
});
