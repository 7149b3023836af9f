import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { profileFieldsSchema, type ProfileFields } from '../facts/validate/profile-fields.js';
import { InferscopeError, messageOf } from '../model/errors.js';
import { parseJson } from '../model/parse-json.js';
import { usableSessions } from '../session/select.js';
import { openSession } from '../session/open.js';
import { memoryProfiles } from '../facts/memory-profile/imported.js';
import type { Configuration } from './profile-configuration.js';

interface ReadProfiles {
  profiles: { source: string; profile: ProfileFields }[];
  /** JSON files of a folder that are not memory profiles. */
  ignored: number;
}

/** Default folder of profiles of `memory` and `sweep`. */
const defaultFolder = join('results', 'memory-profiles');

/**
 * Profiles from files, folders (recursive) and memory sessions. Default: results/memory-profiles, else every session
 * with a memory profile, including imported ones.
 * @throws E_USAGE when there is none or a path does not exist, E_FORMAT_UNKNOWN for a named file that is not a profile, E_SESSION_NOT_FOUND
 */
export async function readProfiles(
  paths: readonly string[],
  configuration: Configuration,
): Promise<ReadProfiles> {
  const result: ReadProfiles = { profiles: [], ignored: 0 };
  const defaultStats = await stat(defaultFolder).catch(() => null);
  const sources =
    paths.length > 0
      ? paths
      : defaultStats
        ? [defaultFolder]
        : usableSessions(memoryProfiles).map(({ id }) => id);
  for (const source of sources) await readOne(source, configuration, result);
  if (result.profiles.length > 0) {
    configuration.ensureUsed();
    return result;
  }
  throw new InferscopeError('E_USAGE', {
    what: 'no memory profile to compare the estimate with',
    why:
      paths.length > 0
        ? `${paths.join(', ')} ${paths.length === 1 ? 'holds' : 'hold'} none of schema 2.0.`
        : defaultStats
          ? `${defaultFolder} holds none of schema 2.0.`
          : `There is no ${defaultFolder} here and no memory session.`,
    fix: 'Measure one: inferscope memory --model llama-3.1-8b --input-len 512 --output-len 128',
  });
}

async function readOne(source: string, configuration: Configuration, result: ReadProfiles): Promise<void> {
  const file = await stat(source).catch(() => null);
  if (file === null) {
    if (/\/|\.json$/.test(source)) throw noFile(source);
    result.profiles.push({ source, profile: await profileOfSession(source) });
    return;
  }
  if (!file.isDirectory()) {
    result.profiles.push({ source, profile: await readProfile(source, configuration) });
    return;
  }
  const names = (await readdir(source, { recursive: true })).filter((name) => name.endsWith('.json')).sort();
  for (const name of names) {
    const path = join(source, name);
    try {
      result.profiles.push({ source: path, profile: await readProfile(path, configuration) });
    } catch (error) {
      if (!(error instanceof InferscopeError) || error.code !== 'E_FORMAT_UNKNOWN') throw error;
      result.ignored += 1;
    }
  }
}

function noFile(source: string): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: `${source} does not exist`,
    why: 'It is not a file, folder or session.',
    fix: 'Give a JSON file of `inferscope memory`, a folder of them, or a session such as @last.',
  });
}

async function profileOfSession(selector: string): Promise<ProfileFields> {
  const session = await openSession(selector, undefined, memoryProfiles);
  const { analyzeMemory } = await import('../facts/memory-profile/memory.js');
  return profileFieldsSchema.parse((await analyzeMemory(session)).data.profile);
}

/** A profile, or the document of `memory --json` around one. @throws E_FORMAT_UNKNOWN */
async function readProfile(path: string, configuration: Configuration): Promise<ProfileFields> {
  const fail = (why: string): never => {
    throw new InferscopeError('E_FORMAT_UNKNOWN', {
      what: `${path} is not a memory profile of schema 2.0`,
      why,
      fix: 'Give a JSON file of `inferscope memory`, a folder of them, or a session.',
    });
  };
  let json: unknown;
  try {
    json = parseJson(await readFile(path, 'utf8'));
  } catch (error) {
    return fail(
      error instanceof SyntaxError ? 'It is not JSON, cut off, or nested too deeply.' : messageOf(error),
    );
  }
  const parsed = profileFieldsSchema.safeParse(configuration.fill(json));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return fail(issue ? `${issue.path.join('.') || 'it'}: ${issue.message}` : 'It has other fields.');
  }
  const major = parsed.data.schema_version.split('.')[0];
  return major === '2' ? parsed.data : fail(`Its schema_version is ${parsed.data.schema_version}.`);
}
