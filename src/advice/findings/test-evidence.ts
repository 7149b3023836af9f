import { userDatabase } from '../../facts/derived/test-queries.js';
import { expect } from 'vitest';
import type { ExplainResult, Finding } from '../../model/documents/explain.js';
import { headlineTime } from '../../model/headline-time.js';
import { formatPart, noValue } from '../../vocabulary/format.js';
import type { Session } from '../../session/open.js';

/** Fails if a title has another share of its stage, or of the run, than the finding affects. */
export function expectShares(findings: readonly Pick<Finding, 'id' | 'title' | 'at_stake_share'>[]): void {
  for (const { id, title, at_stake_share: share } of findings) {
    expect(title, id).not.toContain(`${noValue} of`);
    const inTitle = /(\S+ %) of (every|each|the run|the whole|all)\b/.exec(title);
    if (inTitle) expect(inTitle[1], `${id}: ${title}`).toBe(share === null ? null : formatPart(share, 1));
  }
}

/** Fails if a finding promises more than its stage takes. */
export function expectGains({ stages, findings }: Pick<ExplainResult, 'stages' | 'findings'>): void {
  for (const { id, stage, gain } of findings) {
    const waterfall = stages.find(({ kind }) => kind === stage);
    const ms = waterfall ? headlineTime(waterfall).value : null;
    if (gain?.per === 'stage' && ms !== null) expect(gain.expected_ms, id).toBeLessThanOrEqual(ms);
  }
}

type Cell = string | number | boolean | null;

/** Sums of many doubles differ in their last digits by the order in which threads add. */
const cell = (value: Cell): Cell => (typeof value === 'number' ? Number(value.toPrecision(9)) : value);
const line = (row: Record<string, Cell>): string =>
  JSON.stringify(Object.entries(row).map(([name, value]) => [name, cell(value)]));

/**
 * Fails unless every finding has a query that runs on its own, on the session's tables only, and returns the rows that
 * the finding shows.
 */
export async function expectEvidence(
  session: Session,
  findings: readonly Pick<Finding, 'title' | 'evidence'>[],
): Promise<void> {
  if (findings.length === 0) return;
  const database = await userDatabase(session);
  try {
    for (const { title, evidence } of findings) {
      expect(evidence.length, title).toBeGreaterThan(0);
      for (const { sql, rows, row_count: count, text } of evidence) {
        expect(text, title).not.toBe('');
        expect(sql, title).not.toBeNull();
        const answer = await database.query<Record<string, Cell>>(sql!);
        expect(answer.length, `${title}: ${sql}`).toBe(count);
        expect(count, `${title}: ${sql}`).toBeGreaterThan(0);
        const knownRows = new Set(answer.map(line));
        for (const row of rows)
          expect(knownRows.has(line(row)), `${title}: ${line(row)} of ${sql}`).toBe(true);
      }
    }
  } finally {
    await database.close();
  }
}
