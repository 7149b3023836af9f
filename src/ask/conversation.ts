import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ModelMessage } from 'ai';
import { z } from 'zod';
import { answerQuerySchema } from '../model/documents/analyze.js';
import { InferscopeError } from '../model/errors.js';
import type { Session } from '../session/open.js';
import { asStorageFailure } from '../vocabulary/storage-failure.js';
import type { RecordedQuery } from './recorder.js';
import type { Redactor } from './redactor.js';
import { writeAtomically } from '../model/atomic-write.js';

/** File below derived/, which belongs to the user and has no checksum. */
const conversationFile = 'conversation.json';

const turnSchema = z.object({
  at: z.string(),
  question: z.string(),
  model: z.string(),
  /** As shown, with unverified numbers marked. */
  answer: z.string(),
  queries: z.array(answerQuerySchema.extend({ data: z.unknown() })),
  messages: z.array(z.custom<ModelMessage>(isTurnsMessage)),
});
const conversationSchema = z.object({
  version: z.literal(1),
  session_sha256: z.string(),
  turns: z.array(turnSchema),
});

/** Only these roles are accepted, so that the file cannot contain instructions; the rest is checked before it is sent. */
function isTurnsMessage(value: unknown): boolean {
  const role = (value as { role?: unknown } | null)?.role;
  return role === 'user' || role === 'assistant' || role === 'tool';
}

type Turn = z.infer<typeof turnSchema>;

/** Turns of the session's conversation, oldest first; empty without a valid file, or if the session was changed since. */
export async function readConversation({ folder, sha256 }: Session): Promise<Turn[]> {
  try {
    const text = await readFile(join(folder, 'derived', conversationFile), 'utf8');
    // derived/ may come from another user's archive.
    const stored = conversationSchema.parse(JSON.parse(text));
    return stored.session_sha256 === sha256 ? stored.turns : [];
  } catch {
    return [];
  }
}

/**
 * Messages and queries of the conversation to continue, redacted again, because permissions may have changed.
 * @throws E_USAGE when there is none
 */
export async function earlierMessages(session: Session, redact: Redactor) {
  const turns = await readConversation(session);
  if (turns.length === 0) {
    throw new InferscopeError('E_USAGE', {
      what: `session ${session.id} has no conversation to continue`,
      why: 'No model has answered a question about it yet, or the session was changed since.',
      fix: 'Omit --continue to start one.',
    });
  }
  const { modelMessageSchema } = await import('ai');
  const messages = modelMessageSchema.array().parse(redact.json(turns.flatMap((turn) => turn.messages)));
  const queries = redact.json(turns.flatMap((turn) => turn.queries)) as RecordedQuery[];
  return { messages, queries };
}

/**
 * Saves a turn in the session's folder: as a new conversation, or appended to the previous turns.
 * @throws E_DISK_FULL, E_HOME_UNWRITABLE
 */
export async function saveTurn(session: Session, turn: Turn, continues: boolean): Promise<void> {
  const folder = join(session.folder, 'derived');
  const path = join(folder, conversationFile);
  const turns = [...(continues ? await readConversation(session) : []), turn];
  try {
    const text = JSON.stringify({ version: 1, session_sha256: session.sha256, turns }, null, 1);
    writeAtomically(path, `${text}\n`, { mode: 0o600 });
  } catch (error) {
    throw asStorageFailure(error, { path: folder, doing: 'save the conversation', home: true });
  }
}
