import { readFile } from 'node:fs/promises';
import os from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

/**
 * Folder of the newest snapshot of a model downloaded by huggingface_hub; null without one. It looks in HF_HUB_CACHE,
 * else $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub.
 */
export async function cachedSnapshot(
  hubId: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<string | null> {
  const cache = env['XDG_CACHE_HOME'] || join(env['HOME'] || os.homedir(), '.cache');
  const hub = env['HF_HUB_CACHE'] || join(env['HF_HOME'] || join(cache, 'huggingface'), 'hub');
  const folder = join(hub, `models--${hubId.replaceAll('/', '--')}`);
  try {
    const revision = (await readFile(join(folder, 'refs', 'main'), 'utf8')).trim();
    return join(folder, 'snapshots', revision);
  } catch {
    return null;
  }
}

/** config.json of a model downloaded by huggingface_hub; null without one. */
export async function cachedConfig(
  hubId: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Record<string, unknown> | null> {
  const folder = await cachedSnapshot(hubId, env);
  if (folder === null) return null;
  try {
    const config: unknown = JSON.parse(await readFile(join(folder, 'config.json'), 'utf8'));
    return typeof config === 'object' && config !== null && !Array.isArray(config) ? { ...config } : null;
  } catch {
    return null;
  }
}
