import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../model/errors.js';
import type { Issue } from '../model/document.js';
import { contextSchema } from '../model/context.js';
import { type UserData, userVersion } from '../model/manifest.js';
import { toolVersion } from '../model/version.js';
import { flushToDisk, writeDurably } from './digest.js';
import { newer } from './session-problem.js';
import { asStorageFailure } from '../vocabulary/storage-failure.js';

export const userFileName = 'user.json';
const readableMajor = 1;

export function newUser(name: string | null = null, tags: string[] = []): UserData {
  return { name, tags, notes: [] };
}

/**
 * Name, tags and notes as far as they can be read: they are not covered by the checksums, and a damaged user.json must not hide the
 * session.
 */
export function readUser(folder: string): { user: UserData; issue: Issue | null; major: number } {
  const path = join(folder, userFileName);
  if (!existsSync(path)) return { user: newUser(), issue: null, major: readableMajor };
  try {
    const parsed = JSON.parse(readFileSync(path, 'utf8')) as {
      schema?: unknown;
      data?: Record<string, unknown>;
    };
    const major = Number(/^inferscope\/user\/(\d+)\./.exec(String(parsed.schema))?.[1] ?? Number.NaN);
    if (Number.isNaN(major) || !parsed.data) throw new Error('not an inferscope/user document');
    return { user: parseLeniently(parsed.data), issue: null, major };
  } catch (error) {
    const text = `${userFileName} cannot be read (${messageOf(error)}): name, tags and notes are not shown`;
    return {
      user: newUser(),
      issue: { code: 'user_file_damaged', severity: 'warning', text },
      major: Number.NaN,
    };
  }
}

function parseLeniently(data: Record<string, unknown>): UserData {
  const context = contextSchema.optional().safeParse(data['context']);
  if (!context.success) throw new Error('its context has another form');
  const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
  return {
    name: typeof data['name'] === 'string' ? data['name'] : null,
    tags: list(data['tags']).filter((tag) => typeof tag === 'string'),
    notes: list(data['notes']).flatMap((note) => {
      const { at, text } = (note ?? {}) as { at?: unknown; text?: unknown };
      return typeof at === 'string' && typeof text === 'string' ? [{ at, text }] : [];
    }),
    ...(context.data && { context: context.data }),
  };
}

/** Replaces user.json atomically. @throws E_DISK_FULL, E_HOME_UNWRITABLE */
export async function writeUser(folder: string, user: UserData): Promise<void> {
  const path = join(folder, userFileName);
  const next = join(folder, `.${userFileName}.${randomBytes(4).toString('hex')}`);
  const document = {
    schema: `inferscope/user/${userVersion}`,
    tool_version: toolVersion,
    data: user,
    issues: [],
  };
  const text = `${JSON.stringify(document, null, 2)}\n`;
  try {
    await writeDurably(next, text);
    await rename(next, path);
    await flushToDisk(folder);
  } catch (error) {
    await rm(next, { force: true });
    throw asStorageFailure(error, {
      path: folder,
      doing: 'write names, tags and notes',
      neededBytes: text.length,
      home: true,
    });
  }
}

/**
 * Changes user.json. A damaged file is saved next to the new one; a newer major version is rejected.
 * @throws E_SESSION_NEWER, E_DISK_FULL, E_HOME_UNWRITABLE
 */
export async function changeUser(folder: string, change: (user: UserData) => UserData): Promise<UserData> {
  const { user, major } = readUser(folder);
  if (major > readableMajor) throw newer(join(folder, userFileName), major, readableMajor);
  if (Number.isNaN(major)) {
    await rename(join(folder, userFileName), join(folder, `${userFileName}.damaged-${Date.now()}`));
  }
  const newUserData = change(user);
  await writeUser(folder, newUserData);
  return newUserData;
}
