import process from 'node:process';
import { Option, type Command } from 'commander';
import { exitCodeOf, InferscopeError } from '../model/errors.js';
import { parseSlo } from './bench-slo.js';
import type { ServingCommandOptions } from './bench-serve-run.js';
import { durationParser } from './durations.js';
import { examples } from './examples.js';
import { wholeNumberParser } from './numbers.js';

interface ServeBenchOptions extends Omit<ServingCommandOptions, 'slo'> {
  slo?: string;
  sloShare: number;
  csv?: string;
  json?: boolean;
}

/** Returns a parser of load levels: `1,8,32`, `1 8 32` or a repeated flag; positive numbers. */
function levelsParser(flag: string, { areIntegers }: { areIntegers: boolean }) {
  return (text: string, before: number[] = []): number[] => [
    ...before,
    ...text.split(/[\s,]+/).map((part) => {
      const value = Number(part);
      if (value > 0 && Number.isFinite(value) && (!areIntegers || Number.isInteger(value))) return value;
      throw new InferscopeError('E_USAGE', {
        what: `${flag} ${text} cannot be read at "${part}"`,
        why: areIntegers ? 'It is a list of whole numbers above 0.' : 'It is a list of numbers above 0.',
        fix: `Type for example: ${flag} 1,4,16`,
      });
    }),
  ];
}

function parseSloShare(text: string): number {
  const value = text.endsWith('%') ? Number(text.slice(0, -1)) / 100 : Number(text);
  if (value > 0 && value <= 1) return value;
  throw new InferscopeError('E_USAGE', {
    what: `--slo-share ${text} is not a share`,
    why: 'It must be above 0 and at most 1 (or 100%).',
    fix: 'Type for example: --slo-share 99%',
  });
}

function parseTemperature(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && value >= 0 && Number.isFinite(value)) return value;
  throw new InferscopeError('E_USAGE', {
    what: `invalid --temperature ${text}`,
    why: 'It must be 0 or more; 0 is greedy decoding.',
    fix: 'Type for example: --temperature 0.7',
  });
}

function parseRampRates(text: string): { from: number; to: number } {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(?:\.\.|:|-)\s*(\d+(?:\.\d+)?)\s*$/.exec(text);
  const [from, to] = [Number(match?.[1]), Number(match?.[2])];
  if (from + to > 0) return { from, to };
  throw new InferscopeError('E_USAGE', {
    what: `--ramp-rate ${text} cannot be read`,
    why: 'It takes the first and last rate of the load in requests per second.',
    fix: 'Type for example: --ramp-rate 1..20 --duration 60s',
  });
}

/** Returns a parser of durations in seconds. */
function secondsParser(flag: string, { example }: { example: string }): (text: string) => number {
  const parseMs = durationParser(flag, { example });
  return (text) => parseMs(text) / 1000;
}

export function defineServe(command: Command): void {
  command
    .summary('load-test an OpenAI-compatible server')
    .description(
      'load-test an OpenAI-compatible server: vLLM, SGLang, TGI, llama.cpp, Ollama, inferscope serve',
    )
    .argument('[url]', 'URL of the server; usually ends in /v1')
    .option('--model <name>', 'model to request (default: the first that the server lists)')
    .addOption(new Option('--api <api>', 'endpoint').choices(['completions', 'chat']).default('completions'))
    .option(
      '--concurrency <list>',
      'closed-loop users; each waits for its response (default: 1)',
      levelsParser('--concurrency', { areIntegers: true }),
    )
    .option(
      '--rate <list>',
      'open-loop request rate in requests per second',
      levelsParser('--rate', { areIntegers: false }),
    )
    .addOption(
      new Option('--arrivals <kind>', 'arrival process of --rate')
        .choices(['poisson', 'constant'])
        .default('poisson'),
    )
    .option('--ramp-rate <from..to>', 'open-loop rate that rises over --duration', parseRampRates)
    .option('--trace <file>', 'replay arrivals and lengths of a trace (Mooncake JSON lines, Azure CSV)')
    .option(
      '--max-concurrency <n>',
      'max in-flight requests for open-loop load; excess requests queue',
      wholeNumberParser('--max-concurrency', { min: 1, example: 64 }),
    )
    .option(
      '--sweep',
      'double the load (users or --rate) until throughput saturates; with --slo find the highest load that meets it',
    )
    .option(
      '--sweep-max <n>',
      'highest load level of a sweep',
      wholeNumberParser('--sweep-max', { min: 1, example: 256 }),
      256,
    )
    .option(
      '--requests <n>',
      'measured requests per load level (default: 8 per user, min 32)',
      wholeNumberParser('--requests', { min: 1, example: 100 }),
    )
    .option(
      '--duration <time>',
      'start no requests after this time (default for open-loop load: 30s)',
      secondsParser('--duration', { example: '30s' }),
    )
    .option(
      '--warmup-requests <n>',
      'requests excluded from statistics (default: 1 per user; 5 % of open-loop load)',
      wholeNumberParser('--warmup-requests', { min: 0, example: 8 }),
    )
    .addOption(
      new Option('--ramp <time>', 'stagger user start over this period')
        .argParser(secondsParser('--ramp', { example: '2s' }))
        .default(0, '0s'),
    )
    .option(
      '--input-len <n>',
      'prompt length in tokens with --tokenizer, else in words',
      wholeNumberParser('--input-len', { min: 1, example: 128 }),
      128,
    )
    .option(
      '--output-len <n>',
      'generated tokens per request',
      wholeNumberParser('--output-len', { min: 1, example: 64 }),
      64,
    )
    .option('--tokenizer <path>', "the model's tokenizer.json, for exact lengths and token counts")
    .option(
      '--seed <n>',
      'seed for prompts and arrivals (default: random)',
      wholeNumberParser('--seed', { min: 0, example: 1 }),
    )
    .option('--slo <bounds>', 'latency limits per request (ttft, tpot, e2e), e.g. ttft=200ms,tpot=30ms')
    .option('--slo-share <share>', 'share of requests that must meet --slo', parseSloShare, 0.99)
    .option('--temperature <t>', 'sampling temperature', parseTemperature, 0)
    .option('--no-ignore-eos', 'let outputs stop at the end token')
    .option('--extra-body <json>', 'fields to add to every request body')
    .option('--header <name:value...>', 'header to add to every request')
    .addOption(
      new Option('--timeout <time>', 'timeout per request')
        .argParser(durationParser('--timeout', { example: '120s' }))
        .default(600_000, '10m'),
    )
    .option(
      '--threads <n>',
      'client threads (default: 1, more when one is not enough)',
      wholeNumberParser('--threads', { min: 1, example: 2 }),
    )
    .option('--metrics-url <url>', "the server's Prometheus endpoint (default: /metrics)")
    .option('--no-probe', 'skip the probe requests before the load')
    .option('--name <name>', 'name the session')
    .addOption(new Option('--tag <tag...>', 'tag the session').default([], 'none'))
    .option('--csv <file>', 'also write a CSV file, one row per load level')
    .option('--json', 'print one inferscope/serving document')
    .option('--quiet', 'no progress on stderr')
    .addHelpText(
      'after',
      examples(
        [
          'inferscope bench serve http://127.0.0.1:8000/v1 --concurrency 1,4,16',
          'run three closed-loop load levels, new prompts for each',
        ],
        [
          'inferscope bench serve localhost:8000 --rate 2 --sweep --slo tpot=30ms',
          'find the highest Poisson rate that meets an SLO',
        ],
      ),
    )
    .action(async (url: string | undefined, options: ServeBenchOptions) => {
      if (url === undefined)
        throw new InferscopeError('E_USAGE', {
          what: 'bench serve needs the URL of a server',
          why: 'It sends requests to an OpenAI-compatible server that runs already.',
          fix: 'Type for example: inferscope bench serve http://127.0.0.1:8000/v1\nTo start a server to try: inferscope serve',
        });
      const slo = options.slo === undefined ? null : parseSlo(options.slo, options.sloShare);
      const { measureWithProgress: measuring } = await import('./progress.js');
      const { runServing } = await import('./bench-serve-run.js');
      const { document, interrupted } = await measuring(options, (signal, progress) =>
        runServing(url, { ...options, slo }, signal, progress),
      );
      if (options.csv !== undefined) {
        const { servingCsv } = await import('../export/serving-csv.js');
        servingCsv(document.data, options.csv);
      }
      const { id } = document.data.session;
      const { showMeasured } = await import('./show-measured.js');
      await showMeasured({ id, interrupted }, { kind: 'serving', document }, options);
      if (!interrupted && document.data.points.every(({ requests }) => requests.ok === 0))
        process.exitCode = exitCodeOf.E_WORKLOAD_FAILED;
    });
}
