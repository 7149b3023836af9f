import { open, readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { readArchitecture } from '../../llm/read-architecture.js';
import type { HeaderWeights } from '../../llm/model-files.js';
import { ggufConfig, ggufWeights, type GgufTensor } from '../../llm/gguf.js';
import {
  parseSafetensorsHeader,
  safetensorsHeaderLength,
  weightsOfFiles,
  type FileTensor,
} from '../../llm/safetensors.js';
import { InferscopeError, messageOf } from '../../model/errors.js';
import { parseJson } from '../../model/parse-json.js';
import { plural, formatCount } from '../../vocabulary/format.js';

/**
 * Reads only the header of a safetensors file.
 * @throws E_MODEL_FILE
 */
async function readSafetensorsHeader(path: string): Promise<FileTensor[]> {
  const file = await open(path).catch((error: unknown) => {
    throw unreadableFile(path, error);
  });
  try {
    const start = Buffer.alloc(8);
    const { bytesRead } = await file.read(start, 0, 8, 0);
    const length = safetensorsHeaderLength(start.subarray(0, bytesRead), path);
    const { size } = await file.stat();
    if (length + 8 > size) throw truncatedFile(path, size, length + 8);
    const header = Buffer.alloc(length);
    await file.read(header, 0, length, 8);
    const tensors = parseSafetensorsHeader(header, path);
    const fileBytes = 8 + length + tensors.reduce((sum, { bytes }) => sum + bytes, 0);
    if (fileBytes > size) throw truncatedFile(path, size, fileBytes);
    return tensors;
  } finally {
    await file.close();
  }
}

function truncatedFile(path: string, size: number, expected: number): InferscopeError {
  return new InferscopeError('E_MODEL_FILE', {
    what: `${path} is cut short`,
    why: `It has ${plural(size, 'byte')}, its header announces ${formatCount(expected)}: the download is incomplete.`,
    fix: 'Download it again.',
  });
}

function unreadableFile(path: string, error: unknown): InferscopeError {
  return new InferscopeError(
    'E_MODEL_FILE',
    { what: `cannot read ${path}`, why: messageOf(error), fix: 'Check its name and its permissions.' },
    { cause: error },
  );
}

/**
 * Weights in the safetensors files of a folder; null without any. With an index: the files it names; otherwise all
 * except `consolidated*`, which some publishers add as a second copy.
 * @throws E_MODEL_FILE for a damaged file, or a missing file that the index names
 */
export async function folderWeights(
  folder: string,
  config: Record<string, unknown>,
): Promise<HeaderWeights | null> {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.safetensors')).sort();
  const index = await readFile(join(folder, 'model.safetensors.index.json'), 'utf8').catch(() => null);
  const shards = files.filter((name) => !name.startsWith('consolidated'));
  const names = index === null ? (shards.length > 0 ? shards : files) : indexedFiles(index, folder);
  if (names.length === 0) return null;
  const headers = await Promise.all(names.map((name) => readSafetensorsHeader(join(folder, name))));
  return safetensorsWeights(
    headers.flat(),
    config,
    names.length === 1 ? names[0]! : `${names.length} safetensors files`,
  );
}

function indexedFiles(index: string, folder: string): string[] {
  try {
    const { weight_map } = parseJson(index) as { weight_map: Record<string, string> };
    // A name with a folder in it would lead out of the model's folder.
    return [...new Set(Object.values(weight_map))].map((name) => basename(name)).sort();
  } catch (error) {
    throw unreadableFile(join(folder, 'model.safetensors.index.json'), error);
  }
}

export function safetensorsWeights(
  tensors: readonly FileTensor[],
  config: Record<string, unknown>,
  source: string,
): HeaderWeights {
  const { layers, tiedEmbeddings } = readArchitecture(config);
  const weights = weightsOfFiles(tensors, { layers: layers.length, tied: tiedEmbeddings });
  return { ...weights, format: 'safetensors', source: `header of ${source}` };
}

/**
 * config.json and weights of a GGUF file, local or at a URL, with all shards of `-00001-of-0000N`.
 * @throws E_MODEL_FILE if it cannot be read, E_MODEL_ARCHITECTURE for an unknown one
 */
export async function ggufModel(
  source: string,
  fetchWith: { headers?: Record<string, string> } = {},
): Promise<{ name: string; config: Record<string, unknown>; weights: HeaderWeights }> {
  const { gguf } = await import('@huggingface/gguf');
  const remote = /^https?:/.test(source);
  const parsed = await Promise.all(
    shardsOf(source).map((part) =>
      gguf(part, {
        allowLocalFile: !remote,
        ...(fetchWith.headers ? { additionalFetchHeaders: fetchWith.headers } : {}),
      }).catch((error: unknown) => {
        throw new InferscopeError(
          'E_MODEL_FILE',
          {
            what: `${part} could not be read as a GGUF file`,
            why: messageOf(error),
            fix: remote
              ? 'Check the address and the network.'
              : "Download it again, or give the model's config.json.",
          },
          { cause: error },
        );
      }),
    ),
  );
  const tensors: GgufTensor[] = parsed.flatMap(({ tensorInfos }) => tensorInfos);
  const metadata: Record<string, unknown> = { ...parsed[0]!.metadata };
  const file = basename(source.split('?')[0]!);
  const sizes = ggufWeights(tensors, file);
  return {
    name: file.replace(/(-0+1-of-\d+)?\.gguf$/i, ''),
    config: ggufConfig(metadata, tensors, file),
    weights: {
      ...sizes,
      tensors: tensors.length,
      leftOut: [],
      format: 'gguf',
      source: `header of ${file}`,
    },
  };
}

function shardsOf(source: string): string[] {
  const match = /^(.*-)0*1(-of-(\d+)\.gguf)$/i.exec(source);
  if (!match) return [source];
  const [, head = '', tail = '', total = ''] = match;
  return Array.from(
    { length: Number(total) },
    (_, part) => `${head}${String(part + 1).padStart(total.length, '0')}${tail}`,
  );
}

/**
 * The only GGUF of a folder, or its first shard; null without one.
 * @throws E_USAGE if there are several models
 */
export async function ggufOfFolder(folder: string): Promise<string | null> {
  const names = (await readdir(folder)).filter((name) => /\.gguf$/i.test(name)).sort();
  const models = names.filter(
    (name) => !/-\d+-of-\d+\.gguf$/i.test(name) || /-0*1-of-\d+\.gguf$/i.test(name),
  );
  if (models.length <= 1) return models[0] === undefined ? null : join(folder, models[0]);
  throw new InferscopeError('E_USAGE', {
    what: `${folder} holds ${models.length} GGUF models`,
    why: `They are: ${models.join(', ')}.`,
    fix: `Give one: --model ${join(folder, models[0]!)}`,
  });
}
