import type { z } from 'zod';
import type { Published } from '../published.js';

type Documents = { [K in keyof Published]: z.infer<Published[K]['schema']> };
/** Kinds of documents about captures from other tools. */
export type CaptureKind = {
  [K in keyof Published]: Published[K] extends { part: 'captures' } ? K : never;
}[keyof Published];

/** The documents of all captures in a session; null for a kind without rows. */
export type CapturesResult = { [K in CaptureKind]: Documents[K] | null } & {
  /** `kind`: the command that made the session. */
  session: { id: string; kind: string; title: string; started_at: string };
};

/** Document type by kind. */
export type DocumentOf = Documents & { captures: CapturesResult };

/** A kind with its document. */
export type AnyDocument<Kind extends keyof DocumentOf = keyof DocumentOf> = {
  [K in Kind]: {
    kind: K;
    document: DocumentOf[K];
    /** The session, for documents that do not name theirs. */
    session?: { id: string; started_at: string };
  };
}[Kind];
