import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { askTool } from './tool.js';
import { sessionInput, whichSession } from './which-session.js';

const tailBytes = 8192;

/** Only with `--allow output`. */
export const programOutputTool = askTool({
  name: 'program_output',
  description: 'The last 8 KiB that the profiled program wrote to stdout and stderr, of every execution.',
  input: z.object({ ...sessionInput }),
  inputLine: () => null,
  async run({ session: id }, context) {
    const { folder, manifest } = whichSession(context.sessions, id);
    const outputArtifacts = manifest.artifacts.filter(({ kind }) => kind === 'stdout' || kind === 'stderr');
    const outputs = [];
    for (const { path, kind, bytes } of outputArtifacts)
      outputs.push({ kind, path, bytes, tail: await tailOf(join(folder, path)) });
    return { data: { outputs }, rows: outputs.length };
  },
});

async function tailOf(path: string): Promise<string> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    const length = Math.min(size, tailBytes);
    const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
    return buffer.toString('utf8');
  } finally {
    await file.close();
  }
}
