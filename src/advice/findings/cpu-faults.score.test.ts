import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { promisedShare } from '../../../bench/diagnosis/claims.js';
import type { PlantedFault } from '../../../bench/diagnosis/grade.js';
import { textTable } from '../../../bench/diagnosis/text-table.js';
import { explainArchive, inRepository, publishTable } from './test-planted-faults.js';

const { faults } = JSON.parse(readFileSync('bench/diagnosis/cpu-faults.json', 'utf8')) as {
  faults: PlantedFault[];
};

test.runIf(inRepository)('programs without a GPU: the findings equal the table in the docs', async () => {
  const rows: { id: string; planted: string; place: number | null; first: string | null; free: boolean }[] =
    [];
  for (const { id, planted, rules } of faults) {
    const explained = await explainArchive(`test/fixtures/diagnosis-cpu/${id}.tgz`);
    const findings = explained.findings.filter(({ severity }) => severity !== 'info');
    const place = findings.findIndex(({ rule }) => rules.includes(rule));
    rows.push({
      id,
      planted,
      place: place < 0 ? null : place + 1,
      first: findings[0]?.rule ?? null,
      free: findings.every((finding) => (promisedShare(finding, explained) ?? 0) < 0.05),
    });
  }
  const faulty = (row: { id: string }) => faults.some(({ id, rules }) => id === row.id && rules.length > 0);
  const planted = rows.filter(faulty);
  const free = rows.filter((row) => !faulty(row));
  const table = textTable(
    ['program', 'fault', 'place', 'first finding'],
    rows.map((row) => [
      row.id,
      row.planted,
      faulty(row) ? (row.place === null ? 'not named' : String(row.place)) : '–',
      row.first ?? 'none',
    ]),
  );
  const first = planted.filter(({ place }) => place === 1).length;
  const named = planted.filter(({ place }) => place !== null).length;
  publishTable(
    `${table}\n\nFirst finding: ${first} of ${planted.length} (named at all: ${named}). Programs without a fault that no finding promises 5 % for: ${free.filter((row) => row.free).length} of ${free.length}.`,
    [],
    'table of programs without a GPU',
  );
  expect(first / planted.length).toBeGreaterThanOrEqual(0.6);
});
