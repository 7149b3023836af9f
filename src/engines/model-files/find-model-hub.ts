import process from 'node:process';
import { presets } from '../../llm/presets.js';
import { InferscopeError, messageOf } from '../../model/errors.js';
import { nearestNames } from '../../model/nearest.js';
import { safetensorsWeights } from './find-model-files.js';
import type { HeaderWeights } from '../../llm/model-files.js';

/** A config has a few kB and headers have some MB: if they take longer, the hub does not answer. */
const timeoutMs = 20_000;

interface HubModel {
  config: Record<string, unknown>;
  weights: HeaderWeights | null;
  /** Why the headers were not read. */
  withoutWeights: string | null;
}

/** owner/name, as the hub names models. */
export function isHubId(spec: string): boolean {
  return /^[\w.-]+\/[\w.-]+$/.test(spec) && !spec.startsWith('.');
}

export function hubUrl(env: NodeJS.ProcessEnv = process.env): string {
  return (env['HF_ENDPOINT'] || 'https://huggingface.co').replace(/\/+$/, '');
}

export function hubHeaders(env: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const token = env['HF_TOKEN'] || env['HUGGING_FACE_HUB_TOKEN'];
  return token ? { authorization: `Bearer ${token}` } : {};
}

/**
 * config.json and the headers of the safetensors files of a model on the hub: at most a few MB, no weights.
 * HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE work as in huggingface_hub.
 * @throws E_SERVER_UNREACHABLE offline, E_MODEL_ACCESS for a gated model, E_MODEL_NOT_FOUND, E_MODEL_CONFIG, E_SERVER_RESPONSE
 */
export async function hubModel(id: string, env: NodeJS.ProcessEnv = process.env): Promise<HubModel> {
  if (/^(1|true|yes|on)$/i.test(env['HF_HUB_OFFLINE'] ?? '')) throw offline(id, 'HF_HUB_OFFLINE is set.');
  const config = await hubConfig(id, env);
  try {
    const { parseSafetensorsMetadata } = await import('@huggingface/hub');
    const headers = hubHeaders(env);
    const metadata = await parseSafetensorsMetadata({
      repo: id,
      hubUrl: hubUrl(env),
      fetch: (url, init) =>
        fetch(url, {
          ...init,
          // The token is for the hub only and is not sent to other hosts.
          headers: {
            ...Object.fromEntries(new Headers(init?.headers)),
            ...(addressOf(url).startsWith(`${hubUrl(env)}/`) ? headers : {}),
          },
          signal: AbortSignal.timeout(timeoutMs),
        }),
    });
    const files = metadata.sharded ? Object.values(metadata.headers) : [metadata.header];
    const tensors = files.flatMap((file) =>
      Object.entries(file).flatMap(([name, tensor]) =>
        name === '__metadata__' || !('data_offsets' in tensor)
          ? []
          : [
              {
                name,
                dtype: String(tensor.dtype),
                shape: tensor.shape as number[],
                bytes: spanOf(tensor.data_offsets),
              },
            ],
      ),
    );
    const source = `${files.length === 1 ? 'model.safetensors' : `${files.length} safetensors files`} on the hub`;
    return { config, weights: safetensorsWeights(tensors, config, source), withoutWeights: null };
  } catch (error) {
    if (error instanceof InferscopeError) throw error;
    return { config, weights: null, withoutWeights: messageOf(error) };
  }
}

function addressOf(url: string | URL | Request): string {
  return typeof url === 'string' ? url : url instanceof URL ? url.href : url.url;
}

function spanOf(offsets: unknown): number {
  const [from, to] = offsets as [number, number];
  return to - from;
}

async function hubConfig(id: string, env: NodeJS.ProcessEnv): Promise<Record<string, unknown>> {
  const url = `${hubUrl(env)}/${id}/resolve/main/config.json`;
  let response: Response;
  try {
    response = await fetch(url, { headers: hubHeaders(env), signal: AbortSignal.timeout(timeoutMs) });
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    throw offline(id, `${new URL(url).host} does not answer (${messageOf(cause)}).`, error);
  }
  if (response.status === 401 || response.status === 403) {
    throw new InferscopeError('E_MODEL_ACCESS', {
      what: `the hub does not give ${id} (HTTP ${response.status})`,
      why: env['HF_TOKEN']
        ? 'It is gated and this token has no access, or there is no such model.'
        : 'It is gated or private, or there is no such model; HF_TOKEN is not set.',
      fix: `Ask for access at ${hubUrl(env)}/${id}, then type: HF_TOKEN=… inferscope estimate --model ${id}`,
    });
  }
  if (!response.ok) {
    throw new InferscopeError(response.status === 404 ? 'E_MODEL_NOT_FOUND' : 'E_SERVER_RESPONSE', {
      what: `the hub has no config.json of ${id} (HTTP ${response.status})`,
      why:
        response.status === 404
          ? 'There is no such model, or it holds no config.json.'
          : 'The hub has a problem.',
      fix: `Check the name at ${hubUrl(env)}/${id}. ${presetList(id)}`,
    });
  }
  const config: unknown = await response.json().catch(() => null);
  if (typeof config === 'object' && config !== null && !Array.isArray(config)) return { ...config };
  throw new InferscopeError('E_MODEL_CONFIG', {
    what: `the config.json of ${id} is not a JSON object`,
    why: `It came from ${url}.`,
    fix: 'Give a config.json of your own.',
  });
}

function presetList(id: string): string {
  const names = presets.map((preset) => preset.id);
  return `Bundled, without any network: ${nearestNames(names, id.split('/').at(-1)!)}; inferscope estimate --gpu H200 --fits lists all.`;
}

function offline(id: string, why: string, cause?: unknown): InferscopeError {
  return new InferscopeError(
    'E_SERVER_UNREACHABLE',
    {
      what: `the hub cannot be reached for ${id}`,
      why: `${why} ${id} is neither bundled nor in the local cache.`,
      fix: `Give its config.json, folder or GGUF file, or a bundled model. ${presetList(id)}`,
    },
    { cause },
  );
}
