import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { profileFieldsSchema } from '../facts/validate/profile-fields.js';
import { toleranceOf, validateProfiles } from '../facts/validate/validate.js';
import { document } from '../model/document.js';
import { validateVersion } from '../model/documents/validate.js';
import { pageOfView } from '../render/html/view.js';
import { terminalView } from '../render/terminal/view.js';
import { plainText, rawValue } from '../render/value.js';
import { hostileText } from './test-profile.js';
import type { Block, Table } from './block.js';
import { validateView } from './validate.js';

const path = join('test', 'fixtures', 'memory-profiles-h200', 'llama-3.1-8b-bfloat16.json');
const profile = profileFieldsSchema.parse(JSON.parse(readFileSync(path, 'utf8')));
const wrongProfile = structuredClone(profile);
// 4 GB more activations than the calculator estimates: 1.95 against 5.95.
wrongProfile.memory_breakdown.components!.find(({ component }) => component === 'activations')!.bytes += 4e9;
wrongProfile.memory_breakdown.total_measured_bytes! += 4e9;
const validation = document('validate', validateVersion, {
  session: null,
  ...validateProfiles(
    [
      { source: 'right.json', profile },
      { source: hostileText, profile: wrongProfile },
    ],
    toleranceOf(0.05),
  ),
});
const view = validateView(validation);
const section = (id: string) => view.sections.find((candidate) => candidate.id === id)!;
const isTable = (block: Block): block is Block & Table => block.type === 'table';

test('shows errors by component and in total, with a sign', () => {
  const rows = section('errors').blocks.find(isTable)!.rows;
  const row = (name: string) => rows.find(({ cells }) => rawValue(cells[0]!) === name)!.cells;
  expect(row('KV cache').map(rawValue)).toEqual(['KV cache', 2, 0, 0, 0, 0, '2/2']);
  expect(plainText(row('activations')[5]!)).toBe('−67\u00a0%');
  const signed = plainText({ n: 0.042, unit: 'ratio', signed: true });
  expect([signed, plainText({ n: 0.000_01, unit: 'ratio', signed: true })]).toEqual([
    '+4.2\u00a0%',
    '<0.01\u00a0%',
  ]);
});

test('lists profiles, those beyond the tolerance first, with the reason', () => {
  const { rows } = section('profiles').blocks.find(isTable)!;
  expect(rows.map(({ cells }) => plainText(cells.at(-1)!))).toEqual(['fitted, outside tolerance', 'fitted']);
  const [bytes] = [rows[0]!.cells[1]!].map(rawValue);
  expect(1e9 * (bytes as number)).toBeCloseTo(wrongProfile.memory_breakdown.total_measured_bytes!, 0);
  const text = terminalView(view, { width: 80 }).replaceAll(/\s+/g, ' ');
  expect(text).toContain('activations: 1.947 GB estimated, 5.947 GB measured (−67 %)');
});

test.each([
  [1, 80],
  [2, 80],
  [2, 120],
] as const)('level %i fits %i columns', (level, width) => {
  const lines = terminalView(view, { width, level }).split('\n');
  expect(lines.filter((line) => [...line].length > width)).toEqual([]);
  if (level === 1) expect(lines.length).toBeLessThanOrEqual(30);
});

test('names of files cannot inject anything on a page', () => {
  expect(pageOfView(view, { clientScript: '' })).not.toContain(`>${hostileText}`);
});
