import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import process from 'node:process';
import { parseJson } from './parse-json.js';
import { shellWord } from './shell.js';

/** Commands in `inferscope --help`; "inferscope reads" is not a command. */
const verbs =
  'analyze|baseline|bench|completion|doctor|estimate|explain|export|gemm|import|kernels|memory|monitor|predict|profile|report|roofline|run|schema|serve|session|setup|sql|sweep|ui|validate';
const command = new RegExp(
  String.raw`(?<![\w./@-]|npx )inferscope(?=[ \u00a0](?:--help|(?:${verbs})\b))`,
  'g',
);

/**
 * How the user starts this program: `inferscope`, or through npx, which adds no command to the PATH: `npx inferscope` for an installed
 * package, `npx ./inferscope-0.1.0.tgz` for a file.
 * @param script process.argv[1], the script's path
 */
export function programName(
  env: NodeJS.ProcessEnv = process.env,
  script: string = process.argv[1] ?? '',
): string {
  // Programs started by npx inherit its variables.
  if (env['npm_lifecycle_event'] !== 'npx' || basename(dirname(script)) !== '.bin') return 'inferscope';
  const [cache] = /^.*[/\\]_npx[/\\][^/\\]+(?=[/\\])/.exec(dirname(script)) ?? [];
  const [spec] = cache === undefined ? [] : packagesOf(cache);
  return `npx ${spec === undefined ? 'inferscope' : shellWord(spec)}`;
}

/** The packages given to npx, which it stores in its cache. */
function packagesOf(cache: string): readonly string[] {
  try {
    const manifest = parseJson(readFileSync(join(cache, 'package.json'), 'utf8')) as {
      _npx?: { packages?: string[] };
    };
    return manifest._npx?.packages ?? [];
  } catch {
    return [];
  }
}

let thisProgram: string | null = null;

/** `text` with its commands as this user starts them. */
export function asTyped(text: string, name: string = (thisProgram ??= programName())): string {
  return name === 'inferscope' ? text : text.replaceAll(command, () => name);
}
