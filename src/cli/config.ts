import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import process from 'node:process';
import type { Command, Option } from 'commander';
import { messageOf } from '../model/errors.js';
import { configError } from './config-error.js';

/**
 * Settings: flags > environment > the nearest inferscope.yaml > $XDG_CONFIG_HOME/inferscope/config.yaml > defaults.
 * Both files have the same format; zod and yaml are loaded only when one of them exists.
 */
export function configFiles(cwd = process.cwd(), env: NodeJS.ProcessEnv = process.env): string[] {
  const files: string[] = [];
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const path = join(folder, 'inferscope.yaml');
    if (existsSync(path)) {
      files.push(path);
      break;
    }
    if (dirname(folder) === folder) break;
  }
  const user = join(env['XDG_CONFIG_HOME'] || join(homedir(), '.config'), 'inferscope', 'config.yaml');
  return existsSync(user) ? [...files, user] : files;
}

/**
 * Applies the config files to this process and to a command: `home` becomes INFERSCOPE_HOME if the environment does
 * not set it, and the section of the command (`bench: {latency: …}` of `bench latency`) sets options that were not
 * typed.
 * @throws E_CONFIG_FILE if a file cannot be read, or with line and column if a setting is wrong
 */
export async function applyConfig(command: Command): Promise<void> {
  const files = configFiles();
  if (files.length === 0) return;
  const { readConfigFile } = await import('./config-file.js');
  for (const path of files) {
    const config = readConfigFile(path, readText(path));
    // An empty value counts as not set, as in homeFolders.
    if (config.home !== undefined) process.env['INFERSCOPE_HOME'] ||= resolve(dirname(path), config.home);
    const section = sectionOf(config, pathOf(command));
    if (section === null) continue;
    for (const [key, value] of Object.entries(section)) {
      // `repeats` is an alias of `runs`, as on the command line.
      const optionKey = key === 'repeats' ? 'runs' : key;
      const option = command.options.find(({ long }) => long === `--${optionKey.replaceAll('_', '-')}`);
      if (!option || value === undefined) continue;
      const name = option.attributeName();
      const source = command.getOptionValueSource(name);
      if (source !== undefined && source !== 'default') continue;
      command.setOptionValueWithSource(name, parseValue(option, value), 'config');
    }
  }
}

/** ["session", "export"]: the command words after the program's name. */
function pathOf(command: Command): string[] {
  const names: string[] = [];
  for (let ancestor: Command | null = command; ancestor?.parent; ancestor = ancestor.parent)
    names.unshift(ancestor.name());
  return names;
}

function sectionOf(config: object, path: readonly string[]): Record<string, unknown> | null {
  let section: unknown = config;
  for (const name of path) section = (section as Record<string, unknown> | undefined)?.[name];
  return typeof section === 'object' && section !== null ? (section as Record<string, unknown>) : null;
}

/** Parses a value as if it were typed on the command line; a list repeats the option. */
function parseValue(option: Option, value: unknown): unknown {
  const { parseArg } = option;
  if (!parseArg) return value;
  return [value].flat().reduce((before: unknown, item) => parseArg(String(item), before as never), undefined);
}

export function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw configError(path, '', messageOf(error), 'Make it readable, or remove it.');
  }
}
