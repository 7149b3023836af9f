import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, describe, expect, test } from 'vitest';
import {
  grade,
  medianOf,
  type PlantedFault,
  type Row,
  scoreOf,
  sentenceOf,
  tableOf,
  type Timing,
  type Variant,
} from '../../../bench/diagnosis/grade.js';
import type { ExplainResult } from '../../model/documents/explain.js';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import { explainSession } from '../explain/explain.js';
import { expectEvidence } from './test-evidence.js';

// node bench/diagnosis/score.mjs runs this file and prints the table.
const {
  DIAGNOSIS_CAPTURES: captures = 'test/fixtures/diagnosis',
  DIAGNOSIS_TABLE: tableFile,
  DIAGNOSIS_UPDATE: update,
  DIAGNOSIS_ONLY: only,
  DIAGNOSIS_VERBOSE: verbose,
} = process.env;

const { faults } = JSON.parse(readFileSync('bench/diagnosis/faults.json', 'utf8')) as {
  faults: PlantedFault[];
};
const root = mkdtempSync(join(tmpdir(), 'inferscope-planted-'));
const home = { root, sessions: join(root, 'sessions'), cache: join(root, 'cache') };
afterAll(() => rmSync(root, { recursive: true, force: true }));

const archiveOf = (id: string, variant: Variant) => join(captures, `${id}-${variant}.tgz`);

async function explained(id: string, variant: Variant): Promise<ExplainResult> {
  const session = await openSession((await importSession(archiveOf(id, variant), home)).id, home);
  const { data } = await explainSession(session);
  await expectEvidence(session, data.findings);
  return data;
}

function timingOf(id: string): Timing | null {
  const path = join(captures, 'timings.json');
  if (!ours && !existsSync(path)) return null;
  const { timings } = JSON.parse(readFileSync(path, 'utf8')) as { timings: Timing[] };
  return timings.find(({ fault }) => fault === id) ?? null;
}

/** What was found in both, for whoever tunes a rule. */
function details(row: Row, documents: Record<Variant, ExplainResult>): string {
  const lines = (['fault', 'fixed'] as const).flatMap((variant) => [
    `  ${variant}: ${documents[variant].stages.map(({ kind, measured_ms }) => `${kind} ${measured_ms.value?.toFixed(3)} ms`).join(', ')}`,
    ...documents[variant].findings.map(
      ({ id, severity, at_stake_ms, gain, title, hidden_by }) =>
        `    ${severity} ${id} at stake ${at_stake_ms?.toFixed(3)} gain ${gain?.expected_ms.toFixed(3)}${hidden_by ? ` hidden by ${hidden_by}` : ''}: ${title}`,
    ),
  ]);
  return [`\n${row.id}`, ...lines].join('\n');
}

const ours = captures === 'test/fixtures/diagnosis';

/** Another folder of captures may hold some of them; ours holds all, and a missing one fails. */
const captured = faults.filter(
  ({ id }) =>
    (only === undefined || only.split(',').includes(id)) &&
    (ours || (existsSync(archiveOf(id, 'fault')) && existsSync(archiveOf(id, 'fixed')))),
);

test('the median of 12 has the 3rd and the 10th value as its 95 % interval', () => {
  const values = [7, 1, 12, 3, 5, 2, 11, 4, 9, 10, 6, 8];
  expect(medianOf(values)).toEqual({ median: 6.5, low: 3, high: 10 });
  // Five values: even the whole range holds the median with 93.75 % only.
  expect(medianOf([1, 2, 3, 4, 5])).toEqual({ median: 3, low: 1, high: 5 });
});

describe('planted faults, as captured on an H200 and an H100', () => {
  test('the planted fault is the first finding, its twin is free of it, and the gain is as expected', async () => {
    // 48 sessions: a quarter of a minute on two cores that are free.
    const rows: Row[] = [];
    const notes: string[] = [];
    for (const fault of captured) {
      const [broken, repaired] = await Promise.all([
        explained(fault.id, 'fault'),
        explained(fault.id, 'fixed'),
      ]);
      const documents = { fault: broken, fixed: repaired };
      const row = grade(fault, documents, timingOf(fault.id));
      rows.push(row);
      if (verbose) notes.push(details(row, documents));
      for (const { stages } of Object.values(documents)) {
        for (const stage of stages) expect(stage.sum_error_share).toBeLessThan(0.001);
      }
    }
    const score = scoreOf(rows);
    const text = `${tableOf(rows)}\n\n${sentenceOf(score)}`;
    if (tableFile) writeFileSync(tableFile, [text, ...notes].join('\n'));
    if (update) writeTable(text);
    expect(rows.length).toBeGreaterThan(0);
    if (only !== undefined || !ours) return;
    expect(rows.length).toBe(faults.length);
    expect(score.first / score.faults, text).toBeGreaterThanOrEqual(11 / 12);
    expect(score.false_alarms + (score.faults - score.free_twins), text).toBeLessThanOrEqual(1);
    expect(score.median_error, text).toBeLessThanOrEqual(0.15);
    expect(score.hidden.named).toBe(score.hidden.planted);
    expect(
      readFileSync('docs/concepts/diagnosis.md', 'utf8'),
      'node bench/diagnosis/score.mjs --update',
    ).toContain(text);
  }, 300_000);
});

/** Between the two marks of docs/concepts/diagnosis.md. */
function writeTable(text: string): void {
  const path = 'docs/concepts/diagnosis.md';
  const page = readFileSync(path, 'utf8');
  const [before, rest] = page.split('<!-- table -->\n');
  const after = rest?.split('<!-- end of table -->')[1];
  if (before === undefined || after === undefined) throw new Error(`${path} has no marks around its table`);
  writeFileSync(path, `${before}<!-- table -->\n\n${text}\n\n<!-- end of table -->${after}`);
}
