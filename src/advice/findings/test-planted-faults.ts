import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, expect } from 'vitest';
import {
  type GeneratedProgram,
  grade,
  type PlantedFault,
  type Row,
  type Score,
  scoreOf,
  sentenceOf,
  tableOf,
  type Timing,
  type Variant,
} from '../../../bench/diagnosis/grade.js';
import {
  claimLines,
  openClaims,
  claimsSentence,
  claimsTable,
  type MeasuredClaim,
} from '../../../bench/diagnosis/claims.js';
import type { ExplainResult } from '../../model/documents/explain.js';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import { explainSession } from '../explain/explain.js';
import { expectEvidence, expectGains, expectShares } from './test-evidence.js';

// node bench/diagnosis/score.mjs sets these, runs the tests and prints their tables.
const {
  DIAGNOSIS_CAPTURES: captures = 'test/fixtures/diagnosis',
  DIAGNOSIS_TABLE: tableFile,
  DIAGNOSIS_UPDATE: update,
  DIAGNOSIS_ONLY: only,
  DIAGNOSIS_VERBOSE: verbose,
  DIAGNOSIS_CLAIMS: claimsFile,
} = process.env;

const read = <T>(path: string) => JSON.parse(readFileSync(path, 'utf8')) as T;
/** Programs used to write the rules. */
export const { faults } = read<{ faults: PlantedFault[] }>('bench/diagnosis/faults.json');
/** Programs of bench/diagnosis/generated.py and stock.py. */
export const generated = read<{ programs: GeneratedProgram[] }>('bench/diagnosis/generated.json').programs;
const measuredClaims = read<{ claims: MeasuredClaim[] }>('test/fixtures/diagnosis-claims/claims.json').claims;
const root = mkdtempSync(join(tmpdir(), 'inferscope-planted-'));
const home = { root, sessions: join(root, 'sessions'), cache: join(root, 'cache') };
afterAll(() => rmSync(root, { recursive: true, force: true }));

export async function explainArchive(archive: string): Promise<ExplainResult> {
  const session = await openSession((await importSession(archive, home)).id, home);
  const { data } = await explainSession(session);
  await expectEvidence(session, data.findings);
  expectShares(data.findings);
  expectGains(data);
  return data;
}

/** Findings of both variants, for tuning a rule. */
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

/** Whether these are the captures in the repository. */
export const inRepository = captures === 'test/fixtures/diagnosis';
/** Whether all programs are graded, which the scores in the docs need. */
export const allPrograms = inRepository && only === undefined;

/** Grades the requested programs, captured in `ownFolder`, with the findings of each. */
export async function gradeProgram(
  programs: readonly PlantedFault[],
  ownFolder: string,
): Promise<[Row[], string[]]> {
  const folder = inRepository ? ownFolder : captures;
  const timings = join(folder, 'timings.json');
  const all = inRepository || existsSync(timings) ? read<{ timings: Timing[] }>(timings).timings : [];
  const rows: Row[] = [];
  const notes: string[] = [];
  for (const fault of programs.filter(chosen)) {
    const archive = (variant: Variant) => join(folder, `${fault.id}-${variant}.tgz`);
    // Another folder may have only some captures; the repository has all, and a missing one fails.
    if (!inRepository && !(existsSync(archive('fault')) && existsSync(archive('fixed')))) continue;
    const [broken, repaired] = await Promise.all([
      explainArchive(archive('fault')),
      explainArchive(archive('fixed')),
    ]);
    const documents = { fault: broken, fixed: repaired };
    const timing = all.find((one) => one.fault === fault.id) ?? null;
    const row = grade(fault, documents, timing, measuredClaims);
    rows.push(row);
    notes.push(details(row, documents));
    for (const { stages } of Object.values(documents)) {
      for (const stage of stages) expect(stage.sum_error_share).toBeLessThan(0.001);
    }
  }
  return [rows, notes];
}

const chosen = ({ id }: PlantedFault) => only === undefined || only.split(',').includes(id);

/** The table and its sentence, which the docs page must show. */
export function publish(rows: readonly Row[], notes: readonly string[], mark: string): Score {
  const score = scoreOf(rows);
  publishTable(`${tableOf(rows)}\n\n${sentenceOf(score)}`, notes, mark);
  return score;
}

/** Claims that remain to be measured, of all halves so far. */
const open: ReturnType<typeof openClaims> = [];

/** Claims of the twins against their measurements. */
export function publishClaims(rows: readonly Row[], mark: string): void {
  const claims = rows.flatMap((row) => row.claims);
  open.push(...openClaims(claims));
  if (claimsFile) writeFileSync(claimsFile, `${JSON.stringify({ claims: open }, null, 1)}\n`);
  publishTable(`${claimsTable(claims)}\n\n${claimsSentence(claims)}`, claimLines(claims), mark);
}

/** Prints a table; the docs page must show it. */
export function publishTable(text: string, notes: readonly string[], mark: string): void {
  print(text, notes);
  if (update) writeTable(text, mark);
  if (allPrograms) {
    expect(readFileSync(page, 'utf8'), 'node bench/diagnosis/score.mjs --update').toContain(text);
  }
}

/** Appends to the table that score.mjs prints. */
export function print(text: string, notes: readonly string[]): void {
  if (tableFile) appendFileSync(tableFile, [text, ...(verbose ? notes : []), '', ''].join('\n'));
}

const page = 'docs/reference/diagnosis-scores.md';

/** Replaces the text between the marks in docs/reference/diagnosis-scores.md. */
function writeTable(text: string, mark: string): void {
  const [before, rest] = readFileSync(page, 'utf8').split(`<!-- ${mark} -->\n`);
  const end = `<!-- end of ${mark} -->`;
  const after = rest?.split(end)[1];
  if (before === undefined || after === undefined) throw new Error(`${page} has no marks around its ${mark}`);
  writeFileSync(page, `${before}<!-- ${mark} -->\n\n${text}\n\n${end}${after}`);
}
