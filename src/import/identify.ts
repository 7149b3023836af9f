import { unreadableFile } from './trace-file-error.js';
import { createReadStream } from 'node:fs';
import { open, readdir, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { createGunzip } from 'node:zlib';
import { InferscopeError, systemErrorCode } from '../model/errors.js';
import { shellCommand } from '../model/shell.js';
import { importers } from './index.js';
import type { Importer } from './importer.js';

/** Number of bytes passed to a sniffer. */
const headBytes = 64 * 1024;

/**
 * The importer for a file or folder, by its content.
 * @throws E_TRACE_FILE if it is missing, empty or unreadable; E_FORMAT_UNKNOWN with the known formats
 */
export async function identify(path: string): Promise<Importer> {
  const head = await readFirstBytes(path);
  const importer = importers.find((importer) => importer.sniff(head, basename(path)));
  if (importer) return importer;
  if ((await stat(path)).isDirectory()) throw unknownFolder(path, head.split('\n'));
  if (isSession(head)) throw exportedSession(path);
  throw new InferscopeError('E_FORMAT_UNKNOWN', {
    what: `${path} has an unknown format`,
    // Without the padding of a tar header.
    why: `It starts with ${JSON.stringify(head.slice(0, 40).replace(/\0+$/, ''))}.`,
    fix: adviceFor(head),
  });
}

function adviceFor(head: string): string {
  if (isTar(head)) return 'This is an archive. Unpack it and import the files.';
  if (head.includes('<nvidia_smi_log>'))
    return 'This is a single snapshot (nvidia-smi -q). Record a run with: inferscope monitor --record, or nvidia-smi dmon -o TD';
  if (head.startsWith('PAR1'))
    return 'Give the whole folder that nsys export --type parquetdir wrote, including StringIds.parquet.';
  return 'Give a file as the profiler wrote it (docs/reference/capture-formats.md lists the formats and the commands that write them).';
}

const isSession = (head: string): boolean => isTar(head) && head.slice(0, 100).includes('/session.json');

const exportedSession = (path: string): InferscopeError =>
  new InferscopeError('E_FORMAT_UNKNOWN', {
    what: `${path} is an exported session`,
    why: 'import reads captures and results of other tools; a session needs no import.',
    fix: `To save it among the sessions: ${shellCommand(['inferscope', 'session', 'import', path])}. To look at it: ${shellCommand(['inferscope', 'explain', path])}`,
  });

/** The user probably meant the files in it, or a session. */
function unknownFolder(path: string, names: readonly string[]): InferscopeError {
  const isSessionFolder = names.includes('session.json');
  const examples = names.filter(Boolean).slice(0, 4).join(', ');
  return new InferscopeError('E_FORMAT_UNKNOWN', {
    what: `${path} is a folder of an unknown kind`,
    why:
      examples === ''
        ? 'It is empty.'
        : `It contains ${examples}${names.length > 4 ? ', …' : ''}. Supported folders: nsys export --type parquetdir, NCCL Inspector logs (HOST-pidN.log), and AIPerf artifacts (profile_export.jsonl).`,
    fix: isSessionFolder
      ? 'It is a session: move it into sessions/ of INFERSCOPE_HOME, or import its export with inferscope session import.'
      : `Name the files of one run: inferscope import ${path}/…`,
  });
}

/** https://www.gnu.org/software/tar/manual/html_node/Standard.html: `magic` of the first header. */
const isTar = (head: string): boolean => head.startsWith('ustar', 257);

/** Whether a file is a tar archive, compressed or not, like those of `session export`. */
export async function isArchive(path: string): Promise<boolean> {
  return isTar(await readFirstBytes(path));
}

async function readFirstBytes(path: string): Promise<string> {
  try {
    const stats = await stat(path);
    if (stats.isDirectory()) return (await readdir(path)).sort().join('\n');
    if (!stats.isFile())
      throw unreadable(path, 'It is a pipe or a device, but a capture must be readable more than once.');
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

/** The start of a gzip file's contents; the importer reports a truncated file later. */
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

const unreadable = unreadableFile(null, 'Check the path, or export it again from the profiler.');
