import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../model/errors.js';
// Types only: `session list` reads a thousand manifests and must not load zod.
import type { Issue } from '../model/document.js';
import type { SavedFile, ManifestData } from '../model/manifest.js';
import { subjects, subjectsOf } from '../model/subjects.js';
import { toolVersion } from '../model/version.js';
import { digestOf, writeDurably } from './digest.js';
import { corrupt, newer } from './session-problem.js';
import { plural, formatCount } from '../vocabulary/format.js';

export function totalBytes(files: SavedFile[]): number {
  return files.reduce((sum, { bytes }) => sum + bytes, 0);
}

export const manifestName = 'session.json';
/** `sha256sum -c session.json.sha256` checks it: the manifest cannot contain its own hash. */
export const manifestHashName = 'session.json.sha256';

/** Version written by this inferscope; equal to manifestVersion of the model, which a test checks. */
export const writtenManifestVersion = '1.1';
const readableMajor = 1;

/** Code of the issue that an export without raw reports adds to its manifest. */
export const rawLeftOut = 'raw_reports_left_out';

export interface ManifestFile {
  toolVersion: string;
  data: ManifestData;
  issues: Issue[];
  /** sha256 of session.json: equal for sessions with equal tables and artifacts. */
  sha256: string;
}

/** Writes session.json with the session's subjects, and its checksum, both durably. @returns the sha256 of session.json */
export async function writeManifest(
  folder: string,
  content: Omit<ManifestData, 'subjects'>,
  issues: Issue[],
  writtenBy = toolVersion,
): Promise<string> {
  const data: ManifestData = { ...content, subjects: subjectsOf(content) };
  const text = `${JSON.stringify(
    { schema: `inferscope/session/${writtenManifestVersion}`, tool_version: writtenBy, data, issues },
    null,
    2,
  )}\n`;
  const { sha256 } = await writeDurably(join(folder, manifestName), text);
  await writeDurably(join(folder, manifestHashName), `${sha256}  ${manifestName}\n`);
  return sha256;
}

/**
 * Reads session.json and checks its version, checksum and outer shape; `checkManifest` of open.ts checks the rest against the schema.
 * @throws E_SESSION_CORRUPT, E_SESSION_NEWER
 */
export function readManifest(folder: string, id: string): ManifestFile {
  let text: Buffer;
  try {
    text = readFileSync(join(folder, manifestName));
  } catch (error) {
    throw corrupt(id, `${manifestName} cannot be read`, messageOf(error), error);
  }
  const parsed = parse(text, id);
  if (!requireReadable(parsed['schema'], `session ${id}`)) {
    throw corrupt(
      id,
      `${manifestName} is not a session manifest`,
      `Its schema is ${String(parsed['schema'])}.`,
    );
  }
  const sha256 = checkHash(folder, id, text);
  const data = parsed['data'] as ManifestData | undefined;
  if (!data || typeof data !== 'object' || !data.tables || !Array.isArray(data.artifacts)) {
    throw corrupt(id, `${manifestName} lacks its data`, 'The field "data" has no tables or artifacts.');
  }
  return {
    toolVersion: String(parsed['tool_version']),
    data: { ...data, subjects: knownSubjects(data) },
    issues: Array.isArray(parsed['issues']) ? (parsed['issues'] as Issue[]) : [],
    sha256,
  };
}

/**
 * Subjects stated in the file and those derived by the current rules; only in memory, since the file has a checksum. A newer minor version may
 * state subjects that are unknown here.
 */
function knownSubjects(data: ManifestData): ManifestData['subjects'] {
  const recordedSubjects: unknown = data.subjects ?? [];
  if (!Array.isArray(recordedSubjects)) return recordedSubjects as never;
  const derived = subjectsOf(data);
  return subjects.filter((subject) => recordedSubjects.includes(subject) || derived.includes(subject));
}

/** @returns false for a text that is not a session schema @throws E_SESSION_NEWER */
export function requireReadable(schema: unknown, what: string): boolean {
  const major = Number(/^inferscope\/session\/(\d+)\.\d+$/.exec(String(schema))?.[1] ?? Number.NaN);
  if (major > readableMajor) throw newer(what, major, readableMajor);
  return !Number.isNaN(major);
}

function parse(text: Buffer, id: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(text.toString('utf8'));
    if (typeof parsed === 'object' && parsed !== null) return parsed as Record<string, unknown>;
    throw new Error('not an object');
  } catch (error) {
    throw corrupt(id, `${manifestName} is not valid JSON`, messageOf(error), error);
  }
}

function checkHash(folder: string, id: string, text: Buffer): string {
  let expectedHash: string;
  try {
    expectedHash = readFileSync(join(folder, manifestHashName), 'utf8').slice(0, 64);
  } catch (error) {
    throw corrupt(id, `${manifestHashName} cannot be read`, messageOf(error), error);
  }
  const { sha256 } = digestOf(text);
  if (expectedHash === sha256) return sha256;
  throw corrupt(
    id,
    `${manifestName} does not match its checksum`,
    `${manifestHashName} states ${expectedHash.slice(0, 12)}…, the file has ${sha256.slice(0, 12)}….`,
  );
}

/** Every file with a checksum in the manifest: tables first, then artifacts. */
export function savedFiles(data: ManifestData): SavedFile[] {
  return [...Object.values(data.tables).flat(), ...data.artifacts];
}

/**
 * Compares each file's size with the manifest, which is fast enough for every opening.
 * @throws E_SESSION_CORRUPT
 */
export function checkSizes(folder: string, data: ManifestData): void {
  for (const file of savedFiles(data)) {
    const stats = statSync(join(folder, file.path), { throwIfNoEntry: false });
    if (!stats?.isFile()) throw corrupt(data.id, `${file.path} is missing`, 'The manifest lists it.');
    if (stats.size !== file.bytes) {
      throw corrupt(
        data.id,
        `${file.path} has the wrong size`,
        `The manifest states ${plural(file.bytes, 'byte')}, the file has ${formatCount(stats.size)}.`,
      );
    }
  }
}
