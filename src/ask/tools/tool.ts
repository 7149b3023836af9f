import type { z } from 'zod';
import type { ExplainResult } from '../../model/documents/explain.js';
import type { Session } from '../../session/open.js';
import type { SqlResult } from '../../session/sql-run.js';

/** What tools can access: the sessions, and nothing else on this machine. */
export interface ToolContext {
  sessions: readonly Session[];
  /** One SELECT over the sessions' tables, with limits. */
  query(sql: string): Promise<SqlResult>;
  explain(session: Session): Promise<ExplainResult>;
}

interface ToolResult {
  data: unknown;
  /** Number of rows or entries. */
  rows: number;
}

/** A read-only tool for the model. No tool writes, starts a program or opens a connection. */
export interface AskTool {
  name: string;
  description: string;
  input: z.ZodType;
  /** The input in one line, for readers of the citations; null if it has none. */
  inputLine(input: never): string | null;
  run(input: never, context: ToolContext): Promise<ToolResult>;
}

/** A tool with an input of its schema's type. */
export function askTool<S extends z.ZodType>(tool: {
  name: string;
  description: string;
  input: S;
  inputLine(input: z.infer<S>): string | null;
  run(input: z.infer<S>, context: ToolContext): Promise<ToolResult>;
}): AskTool {
  return tool;
}
