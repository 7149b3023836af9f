import {
  validateVersion,
  type ValidatedProfile,
  type ValidationHistory,
  validationHistoryVersion,
  validationSchema,
  type Validation,
} from '../../model/documents/validate.js';
import { document, type Document } from '../../model/document.js';
import type { Session } from '../../session/open.js';
import { readPlan } from '../artifact.js';
import { errorSummary } from './error-summary.js';

/**
 * The result of a `validate` session.
 * @throws E_USAGE for other sessions
 */
async function readValidation(session: Session): Promise<Validation> {
  const plan = await readPlan(session, 'validation', validationSchema);
  const { id, started_at } = session.manifest;
  return { ...plan, session: { id, started_at } };
}

export async function validationDocument(session: Session): Promise<Document<Validation>> {
  return document('validate', validateVersion, await readValidation(session), session.issues);
}

type Row = ValidationHistory['sessions'][number];
interface Saved {
  row: Row;
  profiles: readonly ValidatedProfile[];
}

/** One row of the trend, and its profiles. */
async function readSaved(session: Session): Promise<Saved> {
  const { result, tolerance, counts, total, components, profiles } = await readValidation(session);
  const { id, started_at, software } = session.manifest;
  const version = software['inferscope'];
  const tool_version = typeof version === 'string' ? version : '';
  return { row: { id, started_at, tool_version, result, tolerance, counts, total, components }, profiles };
}

/** Validations, oldest first, with the trend of the errors. */
export async function historyDocument(sessions: readonly Session[]): Promise<Document<ValidationHistory>> {
  const saved: Saved[] = [];
  for (const session of sessions) saved.push(await readSaved(session));
  saved.sort((a, b) => a.row.started_at.localeCompare(b.row.started_at, 'en'));
  return document('validate-history', validationHistoryVersion, {
    sessions: saved.map(({ row }) => row),
    trend: trendOf(saved),
  });
}

/** A profile may be in another folder the next time: its run and what it measured identify it. */
const keyOf = (profile: ValidatedProfile): string => {
  const { model, engine, dtype, quantization, tensor_parallel_size, gpu, total } = profile;
  const { batch_size, input_len, output_len } = profile;
  const shape = [tensor_parallel_size, batch_size, input_len, output_len];
  return JSON.stringify([model, engine, dtype, quantization, gpu, shape, total?.measured_bytes]);
};

/** Totals of the compared profiles, by profile. */
const totalsOf = ({ profiles }: Saved) =>
  new Map(profiles.flatMap((profile) => (profile.total ? [[keyOf(profile), profile.total] as const] : [])));

/** From the last session that compared totals to the one before that compared some of the same profiles. */
export function trendOf(saved: readonly Saved[]): ValidationHistory['trend'] {
  const compared = saved.map((one) => ({ id: one.row.id, totals: totalsOf(one) }));
  const last = compared.findLast(({ totals }) => totals.size > 0);
  const shared = ({ totals }: (typeof compared)[number]) =>
    [...totals.keys()].filter((key) => last!.totals.has(key));
  const before = last && compared.findLast((one) => one.id !== last.id && shared(one).length > 0);
  if (!last || !before) return null;
  const keys = shared(before);
  const meanOver = ({ totals }: (typeof compared)[number]) =>
    errorSummary(keys.map((key) => totals.get(key)!)).mean_absolute_share;
  const [was, is] = [meanOver(before), meanOver(last)];
  if (was === null || is === null) return null;
  return {
    before: before.id,
    now: last.id,
    profiles: keys.length,
    mean_absolute_share_before: was,
    mean_absolute_share_now: is,
  };
}
