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

/** Records that these prompts are sent. @returns whether they were sent before, so that a prefix cache may contain them */
export async function usedBefore(cacheDir: string, used: PromptSeed): Promise<boolean> {
  const path = join(cacheDir, fileName);
  const line = JSON.stringify([used.url, used.model, used.seed, used.input_len]);
  const known = await readFile(path, 'utf8').catch(() => '');
  if (known.split('\n').includes(line)) return true;
  await appendFile(path, `${line}\n`);
  return false;
}
