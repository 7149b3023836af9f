import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';

const blockBytes = 2 ** 20;

export interface Source {
  gzip: boolean;
  size: number;
  /** Text of the file, decompressed; a block is valid until the next one is requested. */
  chunks(): AsyncIterable<Buffer>;
  /** Share of the file read so far. */
  share(): number;
  destroy(): void;
}

/** Opens a trace, gzip or not, by its first bytes, because tools name both `.json`. */
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
  return gzip ? inflatedSource(path, size) : plainSource(path, size);
}

function inflatedSource(path: string, size: number): Source {
  const raw = createReadStream(path, { highWaterMark: 256 * 1024 });
  const inflated = createGunzip({ chunkSize: 512 * 1024 });
  raw.on('error', (error) => inflated.destroy(error));
  raw.pipe(inflated);
  return {
    gzip: true,
    size,
    chunks: () => inflated as AsyncIterable<Buffer>,
    share: () => (size === 0 ? 1 : raw.bytesRead / size),
    destroy() {
      raw.destroy();
      inflated.destroy();
    },
  };
}

/** Two alternating buffers: a new buffer per block would dominate garbage collection. */
function plainSource(path: string, size: number): Source {
  let position = 0;
  let stopped = false;
  return {
    gzip: false,
    size,
    async *chunks() {
      const file = await open(path, 'r');
      let pending: Promise<{ bytesRead: number; buffer: Buffer }> | null = null;
      try {
        const buffers = [Buffer.allocUnsafeSlow(blockBytes), Buffer.allocUnsafeSlow(blockBytes)];
        pending = file.read(buffers[0]!, 0, blockBytes, 0);
        for (let turn = 1; ; turn++) {
          const { bytesRead, buffer } = await pending;
          pending = null;
          if (bytesRead === 0 || stopped) return;
          position += bytesRead;
          pending = file.read(buffers[turn % 2]!, 0, blockBytes, position);
          yield buffer.subarray(0, bytesRead);
        }
      } finally {
        await pending?.catch(() => undefined);
        await file.close();
      }
    },
    share: () => (size === 0 ? 1 : position / size),
    destroy() {
      stopped = true;
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
