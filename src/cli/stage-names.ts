import { configFiles, readText } from './config.js';
import type { StageNameRule } from '../import/stage-name-rules.js';

/**
 * The user's stage names: `stages:` of the config files, nearest file first.
 * @throws E_CONFIG_FILE
 */
export async function configuredStageNames(): Promise<StageNameRule[]> {
  const files = configFiles();
  if (files.length === 0) return [];
  const { readConfigFile } = await import('./config-file.js');
  const { stageNameRulesFrom } = await import('../import/stage-name-config.js');
  return files.flatMap((path) => {
    const { stages } = readConfigFile(path, readText(path));
    return stages === undefined ? [] : stageNameRulesFrom(stages, path);
  });
}
