import type { z } from 'zod';
import type { ExplainResult } from '../../model/documents/explain.js';
import type { Session } from '../../session/open.js';
import type { SqlResult } from '../../session/sql-run.js';

/** What tools may look at: sessions, and nothing else of this machine. */
export interface ToolContext {
  sessions: readonly Session[];
  /** One SELECT over the sessions' tables, with limits. */
  query(sql: string): Promise<SqlResult>;
  explain(session: Session): Promise<ExplainResult>;
}

interface Answered {
  data: unknown;
  /** Rows or entries of it. */
  rows: number;
}

/** A read-only question that the model may ask. None of them writes, starts a program or opens a connection. */
export interface AskTool {
  name: string;
  description: string;
  input: z.ZodType;
  /** What was asked in one line, for whoever reads the citations; null where there is nothing to say. */
  asked(input: never): string | null;
  run(input: never, context: ToolContext): Promise<Answered>;
}

/** A tool with an input of its schema's type. */
export function askTool<S extends z.ZodType>(made: {
  name: string;
  description: string;
  input: S;
  asked(input: z.infer<S>): string | null;
  run(input: z.infer<S>, context: ToolContext): Promise<Answered>;
}): AskTool {
  return made;
}
