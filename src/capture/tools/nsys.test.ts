import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { exportFailure, isNewer } from './nsys.js';
import { readReportVersion, findVersion } from './report-version.js';

/** The last records of our reports (nsys 2025.3.1 on the H200), without length bytes. */
const tail =
  'python3\n$7f16678c-2002-42b9-b9ac-04d747bd4554"\n2026-11-21T04:58:00*\n2025.3.1.0:\b36398880R\b36398880\n' +
  '2026-Nov-21 04:58:03\n/tmp/nsys-report-98fd.qdstrm\nnsys profile -t cuda,nvtx /opt/nsight/2031.9.9.9/x.py';

test('reads the version before the raw recording; the command line does not count', () => {
  expect(findVersion(tail)).toBe('2025.3.1.0');
  expect(findVersion('NVIDIA Tegra Profiler Report 36398880.')).toBeNull();
  expect(readReportVersion('/no/such/report.nsys-rep')).toBeNull();
});

test('rejects a report newer than nsys with both versions', () => {
  const folder = mkdtempSync(join(tmpdir(), 'inferscope-nsys-'));
  const report = join(folder, 'r.nsys-rep');
  writeFileSync(report, tail);
  const run = {
    ok: false,
    stdout: '',
    stderr: 'Exportation error',
    exitCode: 1,
    timedOut: false,
    signal: null,
    notFound: false,
  };
  const older = exportFailure(report, { path: '/x/nsys', version: '2024.6.2.225' }, run);
  expect(older.code).toBe('E_TOOL_VERSION');
  expect(`${older.parts.what} ${older.parts.why}`).toMatch(/2024\.6\.2\.225.*2025\.3\.1\.0/);
  // Seen in our log with 2025.3.1.
  const missing = { ...run, stderr: "Exportation error: File not found: '*.nsys-rep'." };
  const same = exportFailure(report, { path: '/x/nsys', version: '2025.3.1.0' }, missing);
  expect([same.code, same.parts.why]).toEqual(['E_TOOL_FAILED', expect.stringContaining('File not found')]);
  rmSync(folder, { recursive: true });
});

test('compares versions by number, field by field', () => {
  expect(isNewer('2025.10.1', '2025.9.9')).toBe(true);
  expect(isNewer('2025.3.1.0', '2025.3.1.90')).toBe(false);
  expect(isNewer('2025.3.1', '2025.3.1.90')).toBe(false);
});
