import { createReadStream } from 'node:fs';
import { open, readdir, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { createGunzip } from 'node:zlib';
import { InferscopeError, systemErrorCode } from '../model/errors.js';
import { shellCommand } from '../model/shell.js';
import { importers } from './index.js';
import type { Importer } from './importer.js';

/** As much as a sniffer sees. */
const headBytes = 64 * 1024;

/**
 * The importer for a file or folder, by its content.
 * @throws E_TRACE_FILE when it is not there, empty or unreadable; E_FORMAT_UNKNOWN with the formats there are
 */
export async function identify(path: string): Promise<Importer> {
  const head = await firstBytes(path);
  const found = importers.find((importer) => importer.sniff(head, basename(path)));
  if (found) return found;
  if ((await stat(path)).isDirectory()) throw plainFolder(path, head.split('\n'));
  throw new InferscopeError('E_FORMAT_UNKNOWN', {
    what: `${path} is in no format inferscope reads`,
    why: `It begins with ${JSON.stringify(head.slice(0, 40))}. Formats: ${importers.map(({ name }) => name).join(', ')}.`,
    fix: whatToGive(path, head),
  });
}

function whatToGive(path: string, head: string): string {
  if (isTar(head))
    return `This is an archive. Of a session, type: ${shellCommand(['inferscope', 'session', 'import', path])}; of captures, unpack it and name them.`;
  if (head.includes('<nvidia_smi_log>'))
    return 'This is one moment (nvidia-smi -q). Record a run with: inferscope monitor --record, or nvidia-smi dmon -o TD';
  if (head.startsWith('PAR1'))
    return 'Parquet files are read as the folder that nsys export --type parquetdir makes, StringIds.parquet included: give the folder.';
  return 'Give a file as the profiler wrote it (docs/reference/capture-formats.md lists them with the commands that make them).';
}

/** Somebody meant the files in it, or a session. */
function plainFolder(path: string, names: readonly string[]): InferscopeError {
  const session = names.includes('session.json');
  const some = names.filter(Boolean).slice(0, 4).join(', ');
  return new InferscopeError('E_FORMAT_UNKNOWN', {
    what: `${path} is a folder, and not one of captures`,
    why:
      some === ''
        ? 'It is empty.'
        : `It holds ${some}${names.length > 4 ? ', …' : ''}. Folders that are read: of nsys export --type parquetdir, and of NCCL Inspector's logs (HOST-pidN.log).`,
    fix: session
      ? 'It is a session: put it below sessions/ of INFERSCOPE_HOME, or bring its export with inferscope session import.'
      : `Name the files that belong to one run: inferscope import ${path}/…`,
  });
}

/** https://www.gnu.org/software/tar/manual/html_node/Standard.html: `magic` of the first header. */
const isTar = (head: string): boolean => head.startsWith('ustar', 257);

/** Whether a file is a tar archive, compressed or not, as `session export` writes it. */
export async function isArchive(path: string): Promise<boolean> {
  return isTar(await firstBytes(path));
}

async function firstBytes(path: string): Promise<string> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) return (await readdir(path)).sort().join('\n');
    if (!found.isFile())
      throw unreadable(path, 'It is a pipe or a device; a capture is read more than once.');
    const head = await readHead(path);
    if (head.length === 0) throw unreadable(path, 'The file is empty.');
    const gzip = head[0] === 0x1f && head[1] === 0x8b;
    return (gzip ? await inflateHead(path) : head).toString('latin1');
  } catch (error) {
    if (error instanceof InferscopeError) throw error;
    const missing = systemErrorCode(error) === 'ENOENT';
    throw unreadable(path, missing ? 'There is no such file.' : (error as Error).message, error);
  }
}

async function readHead(path: string): Promise<Buffer> {
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(headBytes), 0, headBytes, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** The beginning of what a gzip file holds; a file cut off after that is the importer's to report. */
async function inflateHead(path: string): Promise<Buffer> {
  const parts: Buffer[] = [];
  let bytes = 0;
  const source = createReadStream(path);
  const inflated = source.pipe(createGunzip());
  try {
    for await (const part of inflated as AsyncIterable<Buffer>) {
      parts.push(part);
      bytes += part.length;
      if (bytes >= headBytes) break;
    }
  } catch (error) {
    if (bytes === 0) throw error;
  } finally {
    source.destroy();
  }
  return Buffer.concat(parts).subarray(0, headBytes);
}

function unreadable(path: string, why: string, cause?: unknown): InferscopeError {
  return new InferscopeError(
    'E_TRACE_FILE',
    { what: `cannot read ${path}`, why, fix: 'Check the path, or export it again from the profiler.' },
    { cause },
  );
}
