import { join } from 'node:path';
import type { Command } from 'commander';
import { requireMemory } from '../capture/onnx/memory-need.js';
import { defaultThreads } from '../engines/onnx/decoder.js';
import { resolveModel } from '../engines/onnx/model-source.js';
import { serveModel } from '../engines/onnx/server/serve-model.js';
import { detectCpu } from '../hardware/cpu.js';
import { parseDType } from '../model/dtype.js';
import { ensureWritable } from '../session/home.js';
import { asStorageFailure } from '../vocabulary/storage-failure.js';
import { examples } from './examples.js';
import { exitAtOnce, waitForStop, withStopHandler } from './interrupt.js';
import { portParser, parseThreadCount, wholeNumberParser } from './numbers.js';
import { print, notify, warn } from './output.js';
import { startProgress } from './progress.js';
import { plural, formatPart } from '../vocabulary/format.js';

interface ServeCommandOptions {
  model: string;
  dtype?: string;
  threads?: number;
  host: string;
  port: number;
  contextLen: number;
  seed: number;
  quiet?: boolean;
}

export function define(command: Command): void {
  command
    .option(
      '--model <spec>',
      'preset (llama-24m, llama-110m, …), config.json, or a folder with an ONNX export',
      'llama-24m',
    )
    .option('--dtype <dtype>', "float32 or int4 (default: the export's dtype, else float32)")
    .option('--threads <n>', 'CPU threads for compute (default: cores − 1)', parseThreadCount)
    .option(
      '--host <host>',
      'address to listen on; 0.0.0.0: every interface, for URLs with an IP address or this host name',
      '127.0.0.1',
    )
    .option('--port <n>', 'port; 0 chooses a free port', portParser({ example: 8000 }), 8000)
    .option(
      '--context-len <n>',
      'max tokens per request, prompt and output',
      wholeNumberParser('--context-len', { min: 2, example: 2048 }),
      2048,
    )
    .option('--seed <n>', 'seed for random weights', wholeNumberParser('--seed', { min: 0, example: 1 }), 0)
    .option('--quiet', 'no messages on stderr')
    .addHelpText(
      'after',
      examples(
        ['inferscope serve', 'start a server on 127.0.0.1:8000; Ctrl-C drains it'],
        [
          'inferscope serve --model ./my-onnx-export --port 0',
          'serve a trained model with its tokenizer on a free port',
        ],
      ),
    )
    .action(serveCommand);
}

/** Prints the URL on stdout when the server listens, and returns after Ctrl-C has drained it. */
async function serveCommand(options: ServeCommandOptions): Promise<void> {
  const home = ensureWritable();
  const quiet = options.quiet === true;
  const progress = startProgress(quiet);
  const model = await resolveModel(options.model, {
    cacheDir: join(home.cache, 'models'),
    seed: options.seed,
    ...(options.dtype === undefined ? {} : { dtype: parseDType(options.dtype) }),
    accept: (described) =>
      requireMemory(
        described,
        { batchSize: 1, inputLen: options.contextLen - 1, outputLen: 1 },
        '--context-len',
      ),
    onProgress: ({ doneBytes, totalBytes }) =>
      progress.update('writing the model', formatPart(doneBytes, totalBytes)),
  })
    .catch((error: unknown) => {
      throw asStorageFailure(error, { path: home.root, doing: 'write the model', home: true });
    })
    .finally(progress.end);
  const contextLen = Math.min(options.contextLen, model.maxContext ?? options.contextLen);
  const threads = options.threads ?? defaultThreads(detectCpu().usableCores);
  const server = await serveModel(model, { host: options.host, port: options.port, threads, contextLen });
  const urlHost = server.host.includes(':') ? `[${server.host}]` : server.host;
  if (!['127.0.0.1', '::1', 'localhost'].includes(server.host))
    warn(`${server.host} is reachable from other machines, without API key or TLS`);
  print(`http://${urlHost}:${server.port}/v1`);
  if (!quiet) {
    const words =
      server.tokenizer === 'words' ? 'random weights, one token per word' : "with the model's own tokenizer";
    notify(
      `${model.name} (${words}), ${plural(threads, 'thread')}, context ${contextLen}. Requests run one at a time; others queue. Ctrl-C drains.`,
    );
  }
  await waitForStop();
  const pending = server.pending();
  if (!quiet) {
    const count = pending === 1 ? 'one request' : `${pending} requests`;
    notify(pending === 0 ? '\nclosing' : `\ndraining ${count} (Ctrl-C again to exit at once)`);
  }
  await withStopHandler(exitAtOnce, () => server.drain());
}
