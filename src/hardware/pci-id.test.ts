import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { pciIdOf } from './pci-id.js';

const root = mkdtempSync(join(tmpdir(), 'inferscope-pci-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

test("reads vendor and device from Linux, by NVML's bus id", () => {
  const folder = join(root, 'sys/bus/pci/devices/0000:1b:00.0');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'vendor'), '0x10de\n');
  writeFileSync(join(folder, 'device'), '0x2335\n');
  expect(pciIdOf('00000000:1B:00.0', root)).toBe('10de:2335');
  expect(pciIdOf('0000:1b:00.0', root)).toBe('10de:2335');
});

test('unknown if the bus is hidden or the id has another form', () => {
  expect(pciIdOf('00000000:1C:00.0', root)).toBeNull();
  expect(pciIdOf('../../etc/passwd', root)).toBeNull();
  expect(pciIdOf(null, root)).toBeNull();
});
