import { randomInt } from 'node:crypto';
import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Prompts are identical for the same server, model, seed and length. */
interface PromptSeed {
  url: string;
  model: string;
  seed: number;
  input_len: number;
}

export function freshSeed(): number {
  return randomInt(2 ** 31);
}

const fileName = 'load-seeds.jsonl';

/** Records that these prompts are sent. @returns whether they were sent before: a prefix cache may contain them */
export async function recordPromptSeed(cacheDir: string, promptSeed: PromptSeed): Promise<boolean> {
  const path = join(cacheDir, fileName);
  const line = JSON.stringify([promptSeed.url, promptSeed.model, promptSeed.seed, promptSeed.input_len]);
  const known = await readFile(path, 'utf8').catch(() => '');
  if (known.split('\n').includes(line)) return true;
  await appendFile(path, `${line}\n`);
  return false;
}
