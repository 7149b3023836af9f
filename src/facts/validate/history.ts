import {
  validateVersion,
  type ValidationHistory,
  validationSchema,
  type Validation,
} from '../../model/documents/validate.js';
import { document, type Document } from '../../model/document.js';
import type { Session } from '../../session/open.js';
import { readPlan } from '../artifact.js';

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

/** One row of the trend. */
export async function readHistoryRow(session: Session): Promise<ValidationHistory['sessions'][number]> {
  const { result, counts, total, components } = await readValidation(session);
  const { id, started_at, software } = session.manifest;
  const version = software['inferscope'];
  return {
    id,
    started_at,
    tool_version: typeof version === 'string' ? version : '',
    result,
    counts,
    total,
    components,
  };
}
