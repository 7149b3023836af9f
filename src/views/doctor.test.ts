import { expect, test } from 'vitest';
import { document } from '../model/document.js';
import type { DoctorRow } from '../model/documents/doctor.js';
import { terminalView } from '../render/terminal/view.js';
import { doctorView } from './doctor.js';

const row = (id: string, status: DoctorRow['status'], found: string, required = false): DoctorRow => ({
  id,
  group: 'nvidia',
  label: id,
  status,
  found,
  fix: status === 'ok' ? null : `fix of ${id}`,
  required,
});

test('rows that do not apply for one reason are one row; a required one keeps its own with its fix', () => {
  const rows = [
    row('GPU', 'missing', 'no GPU found'),
    row('Driver', 'not_applicable', 'no NVIDIA GPU'),
    row('nsys', 'not_applicable', 'not installed'),
    row('CUDA', 'not_applicable', 'no NVIDIA GPU'),
    row('NVML', 'not_applicable', 'no NVIDIA GPU', true),
  ];
  const text = terminalView(
    doctorView(document('doctor', '1.0', { ok: true, summary: 'x', capabilities: [], rows })),
    {
      width: 80,
    },
  );
  expect(text).toMatch(/Driver, CUDA +- no NVIDIA GPU\n +nsys +- not installed\n +! NVML +- no NVIDIA GPU\n/);
  expect(text).toContain('→ fix of NVML');
});

test('a row with many names does not narrow the text of the others', () => {
  const names = ['torch', 'torch sees a GPU', 'transformers', 'accelerate', 'vLLM'];
  const rows = names.map((name) => row(name, 'not_applicable', 'no Python'));
  const text = terminalView(
    doctorView(document('doctor', '1.0', { ok: true, summary: 'x', capabilities: [], rows })),
    { width: 80 },
  );
  expect(text).toMatch(
    /torch, torch sees a GPU +- no Python\n +transformers, accelerate, vLLM +- no Python\n/,
  );
});
