import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';

export interface Source {
  gzip: boolean;
  size: number;
  /** Text of the file, decompressed. */
  chunks(): AsyncIterable<Buffer>;
  /** Share of the file read so far. */
  share(): number;
  destroy(): void;
}

/** Opens a trace, gzip or not; by its first bytes, since tools name both `.json`. */
export async function openSource(path: string): Promise<Source> {
  const file = await open(path, 'r');
  let size: number;
  const magic = Buffer.alloc(2);
  try {
    size = (await file.stat()).size;
    await file.read(magic, 0, 2, 0);
  } finally {
    await file.close();
  }
  const gzip = magic[0] === 0x1f && magic[1] === 0x8b;
  const raw = createReadStream(path, { highWaterMark: gzip ? 256 * 1024 : 1024 * 1024 });
  const inflated = gzip ? createGunzip({ chunkSize: 512 * 1024 }) : null;
  if (inflated) {
    raw.on('error', (error) => inflated.destroy(error));
    raw.pipe(inflated);
  }
  return {
    gzip,
    size,
    chunks: () => (inflated ?? raw) as AsyncIterable<Buffer>,
    share: () => (size === 0 ? 1 : raw.bytesRead / size),
    destroy() {
      raw.destroy();
      inflated?.destroy();
    },
  };
}

/** The last bytes of a plain file, as text. */
export async function readTail(path: string, bytes: number): Promise<string> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    const from = Math.max(0, size - bytes);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - from), 0, size - from, from);
    return buffer.subarray(0, bytesRead).toString('latin1');
  } finally {
    await file.close();
  }
}
