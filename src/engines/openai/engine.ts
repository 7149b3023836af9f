import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { PromptTokenizer } from '../../load/prompts.js';
import { scrapeServer } from '../../load/server-sampler.js';
import type { Engine, EngineRequest, PreparedEngine } from '../../model/engine.js';
import { InferscopeError, messageOf } from '../../model/errors.js';
import { baseOf, chooseModel, keyOfEnvironment, servedModels } from './find-server.js';
import { runRound, type ServerFacts } from './run-round.js';
import { plural } from '../../vocabulary/format.js';
import { lengthWords } from '../../vocabulary/workload.js';

const knownArgs = ['tokenizer', 'api', 'timeout', 'metrics_url', 'extra_body'] as const;

/**
 * Any OpenAI-compatible server, measured from outside. A batch of b is b streams started together by b connected users.
 * @throws E_USAGE, E_SERVER_UNREACHABLE, E_SERVER_RESPONSE, E_MODEL_NOT_FOUND, E_MODEL_FILE
 */
export const openaiEngine: Engine = {
  name: 'openai',
  async prepare(request: EngineRequest): Promise<PreparedEngine> {
    const args = readArgs(request);
    const baseUrl = baseOf(request.url ?? '', '--engine openai --url');
    const apiKey = keyOfEnvironment();
    const tokenizer = args.tokenizer === null ? undefined : await loadTokenizerAt(args.tokenizer);
    const model = chooseModel(request.model, await servedModels(baseUrl, apiKey), baseUrl);
    const metricsUrl = args.metricsUrl ?? `${new URL(baseUrl).origin}/metrics`;
    const scraped = await scrapeServer(metricsUrl);
    const facts: ServerFacts = {
      target: {
        baseUrl,
        api: args.api,
        model: model.id,
        apiKey,
        headers: {},
        temperature: 0,
        ignoreEos: true,
        extraBody: args.extraBody,
        timeoutMs: args.timeoutMs,
      },
      tokenizer,
      server: scraped?.server ?? 'openai-compatible',
      metricsUrl: scraped ? metricsUrl : null,
    };
    return {
      name: 'openai',
      workload: {
        model: null,
        engine: {
          name: facts.server,
          version: null,
          options: { url: baseUrl, api: args.api, model: model.id, ...request.engineArgs },
        },
        device: 'server',
        threads: null,
        batch_size: null,
        input_len: null,
        output_len: null,
        tensor_parallel_size: 1,
      },
      maxContext: model.maxContext,
      notMeasured: notMeasured(facts),
      refusal: ({ input_len, output_len }) =>
        model.maxContext !== null && input_len + output_len > model.maxContext
          ? `${lengthWords(input_len, output_len)} exceed the context of the server (${plural(model.maxContext, 'token')})`
          : null,
      launch: (order, control) => ({
        pid: null,
        ended: runRound(facts, order, control).then(
          (log) => ({ failure: null, log: log === '' ? null : log }),
          (failure: unknown) => ({ failure, log: null }),
        ),
      }),
    };
  },
};

interface Args {
  tokenizer: string | null;
  api: 'completions' | 'chat';
  timeoutMs: number;
  metricsUrl: string | null;
  extraBody: Record<string, unknown>;
}

function readArgs({ url, weights, dtype, device, threads, engineArgs }: EngineRequest): Args {
  if (url === null) {
    throw new InferscopeError('E_USAGE', {
      what: 'engine openai needs a server',
      why: 'It measures a running server over HTTP.',
      fix: 'Type for example: --engine openai --url http://127.0.0.1:8000/v1',
    });
  }
  for (const [flag, value] of Object.entries({ weights, dtype, device, threads })) {
    if (value === null) continue;
    throw new InferscopeError('E_USAGE', {
      what: `--${flag} cannot be chosen with --engine openai`,
      why: 'The server decided it when it was started.',
      fix: `Leave --${flag} out, or start the server with it.`,
    });
  }
  const unknown = Object.keys(engineArgs).find((key) => !knownArgs.some((known) => known === key));
  if (unknown !== undefined) {
    throw new InferscopeError('E_USAGE', {
      what: `engine openai has no argument "${unknown}"`,
      why: `It knows ${knownArgs.join(', ')}.`,
      fix: 'Type for example: --engine-arg tokenizer=PATH (a tokenizer.json or its folder)',
    });
  }
  const api = engineArgs['api'] ?? 'completions';
  if (api !== 'completions' && api !== 'chat') throw badArg('api', api, 'completions or chat');
  const seconds = Number((engineArgs['timeout'] ?? '600').replace(/s$/, ''));
  if (!(seconds > 0)) throw badArg('timeout', engineArgs['timeout']!, 'seconds above 0');
  return {
    tokenizer: engineArgs['tokenizer'] ?? null,
    api,
    timeoutMs: seconds * 1000,
    metricsUrl: engineArgs['metrics_url'] ?? null,
    extraBody: jsonObject(engineArgs['extra_body'] ?? '{}'),
  };
}

function jsonObject(text: string): Record<string, unknown> {
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === 'object' && body !== null && !Array.isArray(body)) return { ...body };
  } catch {
    // Reported below, like JSON that is not an object.
  }
  throw badArg('extra_body', text, 'a JSON object, added to every request');
}

function badArg(key: string, value: string, takes: string): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: `--engine-arg ${key}=${value} cannot be read`,
    why: `It takes ${takes}.`,
    fix: `Leave ${key} out for its default.`,
  });
}

async function loadTokenizerAt(path: string): Promise<PromptTokenizer> {
  const { loadTokenizer } = await import('../onnx/tokenizer.js');
  const entry = await stat(path).catch((error: unknown) => {
    throw new InferscopeError(
      'E_MODEL_FILE',
      {
        what: `there is no tokenizer at ${path}`,
        why: messageOf(error),
        fix: 'Give the tokenizer.json of the served model, or its folder.',
      },
      { cause: error },
    );
  });
  return loadTokenizer(entry.isDirectory() ? join(path, 'tokenizer.json') : path);
}

function notMeasured({ tokenizer, metricsUrl }: ServerFacts): PreparedEngine['notMeasured'] {
  const outside = (what: string): PreparedEngine['notMeasured'][string] => ({
    code: 'http_only',
    text: `a server is seen over HTTP only: ${what}`,
  });
  return {
    stages: outside(
      'its prefill and decode steps are not known. TTFT and TPOT are means over the streams of a batch, each from its own send; end to end is from the first send to the last content of the batch',
    ),
    itl: {
      code: 'streams_unaligned',
      text: 'the streams of a batch are not in step, so a batch has no gaps between tokens; `inferscope bench serve URL` reports them per request',
    },
    device_time: outside('no events of its device'),
    device_work: outside('no kernels of its device'),
    idle_share: outside('no kernels of its device'),
    memory: outside('neither its process nor its allocator'),
    cpu: outside('not its process'),
    launches: {
      code: 'one_server_process',
      text: 'the server is one process through all rounds: intervals are over rounds, and do not say what another start of the server may do',
    },
    ...(tokenizer
      ? {}
      : {
          exact_prompts: {
            code: 'no_tokenizer',
            text: 'prompts are counted in words, not tokens; --engine-arg tokenizer=PATH makes them exact',
          },
        }),
    ...(metricsUrl === null
      ? { kv_occupancy: { code: 'no_metrics_page', text: 'the server has no /metrics page that reports it' } }
      : {}),
  };
}
