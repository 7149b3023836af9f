import { Option, type Command } from 'commander';
import { sizesParser } from './bench-options.js';
import { examples } from './examples.js';
import { parseBackends, parseDTypes, parseKernelNames, parseMaxSeconds } from './kernels-parse.js';
import { parseThreadCount, wholeNumberParser } from './numbers.js';
import type { KernelName } from '../model/kernels.js';
import type { KernelsOptions } from './kernels-option-values.js';

export function define(command: Command): void {
  const sizes = (flag: string, what: string) =>
    new Option(`${flag} <n...>`, what).argParser(sizesParser(flag));
  command
    .argument(
      '[names...]',
      'kernels (default: all): gemm linear conv2d lstm layernorm-gelu attention softmax rmsnorm swiglu rope embedding sampling',
      (text: string, before: KernelName[] = []) => [...before, ...parseKernelNames(text)],
    )
    .option(
      '--from-model <spec>',
      "measure the operations of a model's prefill and decode: preset, config.json or folder",
    )
    .addOption(sizes('--batch-size', 'batch size; a list sweeps'))
    .addOption(sizes('--seq-len', 'tokens per sequence; a list sweeps'))
    .addOption(
      sizes('--context-len', 'with --from-model: prompt length, and tokens in the KV cache at decode'),
    )
    .addOption(sizes('--hidden-size', 'hidden size; a list sweeps'))
    .addOption(
      new Option(
        '--dtype <dtype...>',
        'float32, tfloat32, float16, bfloat16, float8, int8; a list sweeps (default: bfloat16 on a GPU, float32 on a CPU)',
      ).argParser(parseDTypes),
    )
    .addOption(
      new Option(
        '--backend <name...>',
        "PyTorch attention backend: flash, efficient, cudnn, math, all (default: PyTorch's choice)",
      ).argParser(parseBackends),
    )
    .option(
      '--runs <n>',
      'minimum timed runs per case; continues until the mean is within 1 %',
      wholeNumberParser('--runs', { min: 1, example: 100 }),
      100,
    )
    .option('--max-seconds <s>', 'time limit per case', parseMaxSeconds, 2)
    .option('--device <device>', 'cuda, cuda:1, cpu (default: the first GPU, else the CPU)')
    .addOption(
      new Option(
        '--engine <name>',
        'torch or onnx (embedded, CPU); default: torch if it finds a GPU',
      ).choices(['torch', 'onnx']),
    )
    .option('--threads <n>', 'CPU threads for compute (engine onnx)', parseThreadCount)
    .option('--no-check', 'skip the comparison with a float64 reference')
    .option('--no-graph', 'launch every run separately, even for kernels shorter than launch overhead')
    .option('--trace', 'also record operators and kernels of each case in a few profiled runs')
    .option(
      '--seed <n>',
      'seed for random inputs (engine torch)',
      wholeNumberParser('--seed', { min: 0, example: 1 }),
      0,
    )
    .option('--python <path>', 'Python with torch (default: the one on PATH)')
    .option('--name <name>', 'name the session')
    .addOption(new Option('--tag <tag...>', 'tag the session').default([], 'none'))
    .option('--output <folder>', 'folder for kernel_results.csv and kernel_results.json', './results')
    .option('--json', 'print one inferscope/kernels document')
    .option('--quiet', 'no progress on stderr')
    .addHelpText(
      'after',
      examples(
        [
          'inferscope kernels attention --batch-size 1,8,64 --backend all',
          "sweep one kernel over PyTorch's backends",
        ],
        [
          'inferscope kernels --from-model llama-3.1-8b --batch-size 1,8',
          'measure every operation of a model and their sum',
        ],
      ),
    )
    .action(async (names: KernelName[], options: KernelsOptions) => {
      const { kernelsCommand } = await import('./kernels-command.js');
      await kernelsCommand(names, options);
    });
}
