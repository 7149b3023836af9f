import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, expect, test } from 'vitest';
import {
  familyOf,
  type GeneratedProgram,
  grade,
  medianOf,
  plantedIn,
  type PlantedFault,
  type Row,
  type Score,
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

const read = <T>(path: string) => JSON.parse(readFileSync(path, 'utf8')) as T;
const { faults } = read<{ faults: PlantedFault[] }>('bench/diagnosis/faults.json');
const generated = read<{ programs: GeneratedProgram[] }>('bench/diagnosis/generated.json').programs;
const root = mkdtempSync(join(tmpdir(), 'inferscope-planted-'));
const home = { root, sessions: join(root, 'sessions'), cache: join(root, 'cache') };
afterAll(() => rmSync(root, { recursive: true, force: true }));

async function explained(archive: string): Promise<ExplainResult> {
  const session = await openSession((await importSession(archive, home)).id, home);
  const { data } = await explainSession(session);
  await expectEvidence(session, data.findings);
  return data;
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

/** Grades the programs captured in `folder`, and says what was found in each. */
async function graded(programs: readonly PlantedFault[], folder: string): Promise<[Row[], string[]]> {
  const timings = join(folder, 'timings.json');
  const all = ours || existsSync(timings) ? read<{ timings: Timing[] }>(timings).timings : [];
  const rows: Row[] = [];
  const notes: string[] = [];
  for (const fault of programs) {
    const archive = (variant: Variant) => join(folder, `${fault.id}-${variant}.tgz`);
    // Another folder of captures may hold some of them; ours holds all, and a missing one fails.
    if (!ours && !(existsSync(archive('fault')) && existsSync(archive('fixed')))) continue;
    const [broken, repaired] = await Promise.all([explained(archive('fault')), explained(archive('fixed'))]);
    const documents = { fault: broken, fixed: repaired };
    const row = grade(fault, documents, all.find((one) => one.fault === fault.id) ?? null);
    rows.push(row);
    notes.push(details(row, documents));
    for (const { stages } of Object.values(documents)) {
      for (const stage of stages) expect(stage.sum_error_share).toBeLessThan(0.001);
    }
  }
  return [rows, notes];
}

const chosen = ({ id }: PlantedFault) => only === undefined || only.split(',').includes(id);

/** The table and its sentence; the page of docs must show them. */
function publish(rows: readonly Row[], notes: readonly string[], mark: string): Score {
  const score = scoreOf(rows);
  const text = `${tableOf(rows)}\n\n${sentenceOf(score)}`;
  if (tableFile) appendFileSync(tableFile, [text, ...(verbose ? notes : []), '', ''].join('\n'));
  if (update) writeTable(text, mark);
  if (only === undefined && ours)
    expect(readFileSync(page, 'utf8'), 'node bench/diagnosis/score.mjs --update').toContain(text);
  return score;
}

test('the median of 12 has the 3rd and the 10th value as its 95 % interval', () => {
  const values = [7, 1, 12, 3, 5, 2, 11, 4, 9, 10, 6, 8];
  expect(medianOf(values)).toEqual({ median: 6.5, low: 3, high: 10 });
  // Five values: even the whole range holds the median with 93.75 % only.
  expect(medianOf([1, 2, 3, 4, 5])).toEqual({ median: 3, low: 1, high: 5 });
});

test('planted faults: the fault is the first finding, its twin is free of it, and the gain is as expected', async () => {
  const [rows, notes] = await graded(faults.filter(chosen), captures);
  const score = publish(rows, notes, 'table');
  if (only !== undefined || !ours) return;
  const text = sentenceOf(score);
  expect(rows.length).toBe(faults.length);
  expect(score.first / score.faults, text).toBeGreaterThanOrEqual(11 / 12);
  expect(score.false_alarms + (score.faults - score.free_twins), text).toBeLessThanOrEqual(1);
  expect(score.median_error, text).toBeLessThanOrEqual(0.15);
  expect(score.hidden.named).toBe(score.hidden.planted);
}, 600_000);

test.each([
  ['validation', 'test/fixtures/diagnosis-validation', 'table of programs not tuned on'],
  ['stock-validation', 'test/fixtures/diagnosis-stock', 'table of stock programs'],
  ['engine-validation', 'test/fixtures/diagnosis-engine', 'table of vLLM programs'],
] as const)(
  'programs that no rule was tuned on, %s: what is found in them is what the docs say',
  async (half, folder, mark) => {
    // Other captures may be of any half.
    const programs = generated.filter((one) =>
      ours ? one.half === half : familyOf(one.half) === familyOf(half),
    );
    const [rows, notes] = await graded(programs.map(plantedIn).filter(chosen), ours ? folder : captures);
    publish(rows, notes, mark);
    if (only === undefined && ours) expect(rows.length).toBe(programs.length);
  },
  600_000,
);

test.runIf(ours).each([['earlier', 'test/fixtures/diagnosis-validation']] as const)(
  'programs of a seed that was validation before, %s: the score is not worse than the goals',
  async (half, folder) => {
    const programs = generated.filter((one) => one.half === half);
    const [rows, notes] = await graded(programs.map(plantedIn).filter(chosen), folder);
    const score = scoreOf(rows);
    const text = sentenceOf(score);
    if (tableFile) appendFileSync(tableFile, [half, text, ...(verbose ? notes : []), '', ''].join('\n'));
    if (only !== undefined) return;
    expect(rows.length).toBe(programs.length);
    expect(score.first / score.faults, text).toBeGreaterThanOrEqual(0.9);
    expect(score.false_alarms, text).toBe(0);
  },
  600_000,
);

const page = 'docs/reference/diagnosis-scores.md';

/** Between the marks of docs/reference/diagnosis-scores.md. */
function writeTable(text: string, mark: string): void {
  const [before, rest] = readFileSync(page, 'utf8').split(`<!-- ${mark} -->\n`);
  const end = `<!-- end of ${mark} -->`;
  const after = rest?.split(end)[1];
  if (before === undefined || after === undefined) throw new Error(`${page} has no marks around its ${mark}`);
  writeFileSync(page, `${before}<!-- ${mark} -->\n\n${text}\n\n${end}${after}`);
}
