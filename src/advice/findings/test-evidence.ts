import { userDatabase } from '../../facts/derived/test-queries.js';
import { expect } from 'vitest';
import type { Finding } from '../../model/documents/explain.js';
import type { Session } from '../../session/open.js';

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
