import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { open, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pipeline } from 'node:stream/promises';

export interface Digest {
  bytes: number;
  sha256: string;
}

export function digestOf(data: string | Uint8Array): Digest {
  return {
    bytes: typeof data === 'string' ? Buffer.byteLength(data) : data.byteLength,
    sha256: createHash('sha256').update(data).digest('hex'),
  };
}

/** Size and sha256 of a file, read in one streaming pass. */
export async function digestFile(path: string): Promise<Digest> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 }) as AsyncIterable<Buffer>) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { bytes, sha256: hash.digest('hex') };
}

/** Copies a file and computes its size and sha256 while copying. The target must not exist. */
export async function copyWithDigest(from: string, to: string): Promise<Digest> {
  const hash = createHash('sha256');
  let bytes = 0;
  await pipeline(
    createReadStream(from, { highWaterMark: 1 << 20 }),
    async function* (source: AsyncIterable<Buffer>) {
      for await (const chunk of source) {
        hash.update(chunk);
        bytes += chunk.length;
        yield chunk;
      }
    },
    createWriteStream(to, { flags: 'wx' }),
  );
  return { bytes, sha256: hash.digest('hex') };
}

/** Flushes a file or folder to the disk, so that a rename after it never shows a partial file. */
export async function flushToDisk(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } catch (error) {
    // Some network file systems do not sync folders; the files in them are synced one by one.
    if ((error as NodeJS.ErrnoException).code !== 'EINVAL') throw error;
  } finally {
    await handle.close();
  }
}

/** Writes a new file durably; @returns its size and sha256. */
export async function writeDurably(path: string, data: string | Uint8Array): Promise<Digest> {
  await writeFile(path, data);
  await flushToDisk(path);
  await flushToDisk(dirname(path));
  return digestOf(data);
}
