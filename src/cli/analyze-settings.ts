import { basename } from 'node:path';
import process from 'node:process';
import { durationMs } from './durations.js';
import { configFiles, readText } from './config.js';
import { type ModelSettings, modelSettings } from '../ask/model-settings.js';
import { configError } from './config-error.js';

/**
 * The model that is configured, or null.
 * @param flag --model
 * @throws E_CONFIG_FILE, E_USAGE
 */
export async function configuredModel(flag?: string): Promise<ModelSettings | null> {
  const paths = configFiles();
  if (paths.length === 0) return modelSettings(flag, process.env, []);
  const { readConfigFile } = await import('./config-file.js');
  const sections = paths.map((path) => {
    const { timeout, ...section } = readConfigFile(path, readText(path)).ai ?? {};
    const from = basename(path) === 'inferscope.yaml' ? ('project' as const) : ('user' as const);
    return {
      section: { ...section, ...(timeout === undefined ? {} : { timeout_ms: timeoutMs(path, timeout) }) },
      from,
    };
  });
  return modelSettings(flag, process.env, sections);
}

function timeoutMs(path: string, text: string): number {
  const ms = durationMs(text);
  if (ms !== null && ms > 0) return ms;
  throw configError(path, '', `ai.timeout "${text}" is not a duration`, 'Write for example: timeout: 120s');
}
