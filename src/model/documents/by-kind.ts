import type { z } from 'zod';
import type { Published } from '../published.js';

type Documents = { [K in keyof Published]: z.infer<Published[K]['schema']> };
/** What captures of other tools in a session answer, each in a document of its own. */
export type CaptureKind = {
  [K in keyof Published]: Published[K] extends { of: 'captures' } ? K : never;
}[keyof Published];

/** Everything that captures in a session answer; null where the session has no rows for it. */
export type CapturesResult = { [K in CaptureKind]: Documents[K] | null } & {
  /** `kind`: the command that made it. */
  session: { id: string; kind: string; title: string; started_at: string };
};

/** A document by its kind. */
export type DocumentOf = Documents & { captures: CapturesResult };

/** One of these kinds with its document. */
export type Shown<Kind extends keyof DocumentOf = keyof DocumentOf> = {
  [K in Kind]: {
    kind: K;
    document: DocumentOf[K];
    /** The session of documents that do not name theirs. */
    session?: { id: string; started_at: string };
  };
}[Kind];
