import type { DoctorGroup, DoctorRow } from '../../model/documents/doctor.js';
import type { Evaluator } from '../run/run-options.js';

/** A row without its required flag. `fix` is set for every status except ok. */
export type Verdict = Omit<DoctorRow, 'required'>;

/** Writes the rows of one group. */
export function rowsOf(group: DoctorGroup) {
  const row = (status: Verdict['status']) => (id: string, label: string, found: string, fix: string) => ({
    id,
    group,
    label,
    status,
    found,
    fix: status === 'ok' ? null : fix,
  });
  return {
    ok: (id: string, label: string, found: string): Verdict => row('ok')(id, label, found, ''),
    warning: row('warning'),
    missing: row('missing'),
    notApplicable: row('not_applicable'),
  } satisfies Record<string, (id: string, label: string, found: string, fix: string) => Verdict>;
}

/** Command that uses a tool of `run`, for the end of a fix. */
export function runWith(...evaluators: Evaluator[]): string {
  return `inferscope run --evaluator ${evaluators.join(',')} -- <command>`;
}
