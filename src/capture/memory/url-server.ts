import { readFile } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { smallPage } from '../../model/small-page.js';

/** Facts about a vLLM server in addition to its metrics; null if missing. */
interface ServerIdentity {
  version: string | null;
  /** config.json of its model: `root` of the model is a folder, readable if the server runs on this machine. */
  config: Record<string, unknown> | null;
}

/** Queries `/version` and `/v1/models`. Never rejects, since other servers have neither. */
export async function readServerIdentity(base: URL, model: string, here: boolean): Promise<ServerIdentity> {
  const [reported, listed] = await Promise.all([
    fetchPage(`${base.origin}/version`),
    fetchPage(`${base.origin}${base.pathname.replace(/\/+$/, '')}/models`),
  ]);
  const version = reported?.['version'];
  const models = Array.isArray(listed?.['data']) ? (listed['data'] as Record<string, unknown>[]) : [];
  const root = models.find(({ id }) => id === model)?.['root'];
  return {
    version: typeof version === 'string' ? version : null,
    config: here && typeof root === 'string' && isAbsolute(root) ? await readConfig(root) : null,
  };
}

async function fetchPage(url: string): Promise<Record<string, unknown> | null> {
  try {
    const { status, text } = await smallPage(url, { signal: AbortSignal.timeout(2000) });
    return status === 200 ? objectOf(JSON.parse(text)) : null;
  } catch {
    return null;
  }
}

async function readConfig(folder: string): Promise<Record<string, unknown> | null> {
  try {
    return objectOf(JSON.parse(await readFile(join(folder, 'config.json'), 'utf8')));
  } catch {
    return null;
  }
}

const objectOf = (value: unknown): Record<string, unknown> | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null;
