import { type ErrorCode, InferscopeError, messageOf } from '../model/errors.js';
import type { ManifestData } from '../model/manifest.js';
import { hasSubject, type Subject } from '../model/subjects.js';
import { type SessionFolder, sessionFolders } from './folders.js';
import { type Headline, readHeadline } from './headline.js';
import { homeFolders, type Home } from './home.js';
import { checkSizes, savedFiles, readManifest, totalBytes } from './manifest-file.js';
import { readUser } from './user-file.js';
import { withContext } from './with-context.js';

export interface ListedSession {
  id: string;
  name: string | null;
  tags: string[];
  kind: string | null;
  subjects: Subject[] | null;
  title: string | null;
  status: string | null;
  started_at: string | null;
  /** Tables and artifacts. */
  bytes: number | null;
  /** The headline of its last analysis; null with the reason in headline_why. */
  headline: string | null;
  headline_why: 'not_analyzed' | 'no_time' | null;
  /** Why the session cannot be opened; null if it can. */
  broken: { code: ErrorCode; text: string } | null;
}

/** A session with the program that ran; program and figure are null if it cannot be opened. */
export interface ListedProgram {
  listed: ListedSession;
  program: Pick<ManifestData, 'hardware' | 'workload' | 'command'> | null;
  /** The figure of its headline. */
  figure: Headline['figure'] | null;
  folder: string;
}

/**
 * Every session, the one made or imported last at the end, without loading DuckDB or zod: a thousand are listed in well under half a
 * second. A broken session is an entry with its reason. Checksums of tables are checked only by opening and `verify`.
 */
export const listSessions = (home: Home = homeFolders()): ListedSession[] =>
  listedPrograms(home).map(({ listed }) => listed);

/** Sessions with the programs that ran, of one or several homes. */
export const listedPrograms = (...homes: Home[]): ListedProgram[] => sessionFolders(...homes).map(programOf);

function programOf({ id, folder }: SessionFolder): ListedProgram {
  const { user } = readUser(folder);
  const base = { id, name: user.name, tags: user.tags };
  try {
    const { data, sha256 } = readManifest(folder, id);
    checkSizes(folder, data);
    // Samples, rooflines, microbenchmarks and a validation have no steps of a program.
    const hasSteps = hasSubject(data, 'profile', 'memory', 'bench', 'load', 'timeline', 'results', 'steps');
    const headline = hasSteps ? readHeadline(folder, sha256) : null;
    const headline_why = headline === undefined ? 'not_analyzed' : headline === null ? 'no_time' : null;
    const { hardware, command } = data;
    return {
      listed: {
        ...base,
        ...sessionFacts(data),
        headline: headline?.text ?? null,
        headline_why,
        broken: null,
      },
      program: { hardware, command, workload: withContext(data.workload, user.context ?? {}) },
      figure: headline?.figure ?? null,
      folder,
    };
  } catch (error) {
    const code = error instanceof InferscopeError ? error.code : 'E_SESSION_CORRUPT';
    const noFacts = { kind: null, subjects: null, title: null, status: null, started_at: null, bytes: null };
    const broken = { code, text: messageOf(error) };
    return {
      listed: { ...base, ...noFacts, headline: null, headline_why: null, broken },
      program: null,
      figure: null,
      folder,
    };
  }
}

function sessionFacts(data: ManifestData) {
  return {
    kind: data.kind,
    subjects: data.subjects,
    title: data.title,
    status: data.status,
    started_at: data.started_at,
    bytes: totalBytes(savedFiles(data)),
  };
}
