import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { InferscopeError } from '../../model/errors.js';
import { testFolder } from '../../session/test-folder.js';
import { findSizedModel } from './find-model.js';

const files = join('test', 'fixtures', 'model-files-tiny');
const requests: {
  method: string | undefined;
  url: string;
  range: string | undefined;
  token: string | undefined;
}[] = [];

/** Serves files like the hub: /owner/name/resolve/main/file, with ranges, and 401 if a token is missing. */
function serve({ url = '', method, headers }: IncomingMessage, response: ServerResponse): void {
  requests.push({ method, url, range: headers.range, token: headers.authorization });
  const [, owner = '', name = '', file = ''] =
    /^\/([\w.-]+)\/([\w.-]+)\/(?:resolve|raw)\/main\/([\w.-]+)$/.exec(url) ?? [];
  if (owner === 'gated' && headers.authorization !== 'Bearer secret') {
    response.writeHead(401, { 'x-error-code': 'GatedRepo' }).end();
    return;
  }
  const path = join(files, name === 'tiny-GGUF' ? '' : 'qwen2-safetensors', file);
  if (file === '' || name === 'none' || !existsSync(path)) {
    response.writeHead(404, { 'x-error-code': 'EntryNotFound' }).end();
    return;
  }
  const bytes = readFileSync(path);
  const range = /^bytes=(\d+)-(\d+)?$/.exec(headers.range ?? '');
  const from = range ? Number(range[1]) : 0;
  const to = Math.min(bytes.length - 1, range?.[2] ? Number(range[2]) : bytes.length - 1);
  response.writeHead(range ? 206 : 200, {
    etag: '"x"',
    'accept-ranges': 'bytes',
    'content-length': to - from + 1,
    ...(range ? { 'content-range': `bytes ${from}-${to}/${bytes.length}` } : {}),
  });
  response.end(method === 'HEAD' ? undefined : bytes.subarray(from, to + 1));
}

let server: Server;
beforeAll(async () => {
  server = createServer(serve);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
});
afterAll(() => void server.close());
beforeEach(() => {
  requests.length = 0;
  vi.stubEnv('HF_ENDPOINT', `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  vi.stubEnv('HF_HOME', testFolder());
  vi.stubEnv('HF_TOKEN', '');
});
afterEach(() => vi.unstubAllEnvs());

const failure = async (run: Promise<unknown>): Promise<InferscopeError> => {
  const error: unknown = await run.catch((thrown: unknown) => thrown);
  if (error instanceof InferscopeError) return error;
  throw new Error(`no InferscopeError: ${String(error)}`);
};

describe('a model of the hub', () => {
  it('is read as its config and the headers of its shards, in ranges', async () => {
    const model = await findSizedModel('acme/tiny');
    expect(model.config['model_type']).toBe('qwen2');
    expect(model.withoutWeights).toBeNull();
    // Equal to the files on disk: ORIGIN.md of the fixture.
    expect(model.weights).toMatchObject({ bytes: 43_584, parameters: 21_792, tensors: 26 });
    const fullDownloads = requests.filter(
      ({ method, url, range }) => method === 'GET' && url.endsWith('.safetensors') && range === undefined,
    );
    expect(fullDownloads).toEqual([]);
  });

  it('can be a GGUF by owner/name/file or by its address', async () => {
    for (const spec of [
      'acme/tiny-GGUF/qwen2-q5_0.gguf',
      `${process.env['HF_ENDPOINT']}/acme/tiny-GGUF/resolve/main/qwen2-q5_0.gguf`,
    ]) {
      expect((await findSizedModel(spec)).weights).toMatchObject({ bytes: 18_624, parameters: 21_792 });
    }
  });

  it('that is gated asks for HF_TOKEN, and uses it', async () => {
    const refused = await failure(findSizedModel('gated/tiny'));
    expect(refused.code).toBe('E_MODEL_ACCESS');
    expect(refused.parts.fix).toContain('HF_TOKEN');
    vi.stubEnv('HF_TOKEN', 'secret');
    expect((await findSizedModel('gated/tiny')).weights!.bytes).toBe(43_584);
    expect(requests.every(({ token }, index) => index === 0 || token === 'Bearer secret')).toBe(true);
  });

  it('that does not exist or cannot be reached is an error with alternatives', async () => {
    expect((await failure(findSizedModel('acme/none'))).code).toBe('E_MODEL_NOT_FOUND');
    vi.stubEnv('HF_ENDPOINT', 'http://127.0.0.1:1');
    const offline = await failure(findSizedModel('acme/tiny'));
    expect(offline.code).toBe('E_SERVER_UNREACHABLE');
    expect(offline.parts.fix).toContain('tinyllama-1.1b and ');
    vi.stubEnv('HF_HUB_OFFLINE', '1');
    expect((await failure(findSizedModel('acme/tiny'))).parts.why).toContain('HF_HUB_OFFLINE');
  });

  it('is read from the cache of huggingface_hub if downloaded', async () => {
    const cache = testFolder();
    vi.stubEnv('HF_HUB_CACHE', cache);
    const modelCache = join(cache, 'models--acme--tiny');
    mkdirSync(join(modelCache, 'refs'), { recursive: true });
    writeFileSync(join(modelCache, 'refs', 'main'), 'abc');
    cpSync(join(files, 'qwen2-safetensors'), join(modelCache, 'snapshots', 'abc'), { recursive: true });
    const model = await findSizedModel('acme/tiny');
    expect([model.name, model.weights!.bytes, requests.length]).toEqual(['acme/tiny', 43_584, 0]);
  });
});
