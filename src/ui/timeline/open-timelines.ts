import { messageOf } from '../../model/errors.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import type { Homes } from '../homes.js';
import type { Timeline } from './timeline.js';
import { readTimeline, startTimeline } from './tracks.js';

/** An open session with its timelines, cached for the next requests. */
export interface OpenSession {
  /** Key in URLs. */
  key: string;
  session: Session;
  /** Keeps the session's database open between requests: opening it takes longer than most pages. */
  database: SessionDatabase;
  executions: string[];
  timelines: Map<string, Promise<LoadedTimeline>>;
  /** Earlier results by name: a session never changes. */
  answers: Map<string, Promise<unknown>>;
  /** The current step of computing the overview; null if none is running. */
  doing: string | null;
}

interface LoadedTimeline {
  timeline: Timeline;
  /** Why reading failed; null if it did not. */
  failed: string | null;
  /** Settles when all events are read, or reading failed. */
  read: Promise<void>;
}

/** A cached result of a session; a failed computation is tried again. */
export function once<T>({ answers }: OpenSession, name: string, compute: () => Promise<T>): Promise<T> {
  const known = answers.get(name) as Promise<T> | undefined;
  if (known) return known;
  const answer = compute();
  answers.set(name, answer);
  answer.catch(() => answers.delete(name));
  return answer;
}

/** Maximum open sessions: a large one takes a gigabyte of memory. */
const maxOpen = 4;

/** Maximum rows of a session that is read before its timeline is requested. */
const maxRowsAhead = 500_000;

/** Cache of open sessions; one that changed on disk is opened again. */
export class OpenSessions {
  private readonly sessions = new Map<string, Promise<OpenSession>>();

  constructor(private readonly homes: Homes) {}

  /** @throws errors of openSession */
  async get(key: string): Promise<OpenSession> {
    const session = await this.homes.open(key);
    const state = `${key} ${session.sha256}`;
    const known = this.sessions.get(state) ?? connectSession(key, session);
    // Moves the session to the end: the least recently used one is dropped first.
    this.sessions.delete(state);
    this.sessions.set(state, known);
    for (const [old, openSession] of [...this.sessions].slice(0, -maxOpen)) {
      this.sessions.delete(old);
      openSession.then(({ database }) => database.close()).catch(() => {});
    }
    return known;
  }

  /** Reads the timeline of a small session, which takes less time than the browser needs to start. */
  async readAhead({ key, session, executions: [execution] }: OpenSession): Promise<void> {
    const rows = Object.values(session.manifest.tables)
      .flat()
      .reduce((sum, file) => sum + file.rows, 0);
    if (execution !== undefined && rows <= maxRowsAhead) await (await this.timeline(key, execution)).read;
  }

  async timeline(key: string, execution: string): Promise<LoadedTimeline> {
    const opened = await this.get(key);
    const known = opened.timelines.get(execution) ?? loadTimeline(opened.session, execution);
    opened.timelines.set(execution, known);
    return known;
  }
}

async function connectSession(key: string, session: Session): Promise<OpenSession> {
  const database = await session.connect();
  return {
    key,
    session,
    database,
    executions: await executionsOf(database),
    timelines: new Map(),
    answers: new Map(),
    doing: null,
  };
}

/**
 * Executions with kernels, operators or stages: most kernels first, then most operators and stages. In a session without these, the
 * executions with samples.
 */
export async function executionsOf(database: SessionDatabase): Promise<string[]> {
  const withEvents = await database.query<{ execution_id: string }>(
    `SELECT execution_id FROM (
         SELECT execution_id, count(*) AS kernels, 0 AS others FROM kernels GROUP BY 1 UNION ALL
         SELECT execution_id, 0, count(*) FROM ops GROUP BY 1 UNION ALL
         SELECT execution_id, 0, count(*) FROM stages GROUP BY 1)
       GROUP BY 1 ORDER BY sum(kernels) DESC, sum(others) DESC, 1`,
  );
  const executions =
    withEvents.length > 0
      ? withEvents
      : await database.query<{ execution_id: string }>(
          'SELECT execution_id FROM telemetry GROUP BY 1 ORDER BY min(t_ns), 1',
        );
  return executions.map((execution) => execution.execution_id);
}

async function loadTimeline(session: Session, execution: string): Promise<LoadedTimeline> {
  const database = await session.connect();
  const timeline = await startTimeline(database, execution);
  const found: LoadedTimeline = { timeline, failed: null, read: Promise.resolve() };
  found.read = readTimeline(database, timeline)
    .catch((error: unknown) => {
      found.failed = messageOf(error);
    })
    .finally(() => database.close());
  return found;
}
