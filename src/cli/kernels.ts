import { Option, type Command } from 'commander';
import { sizeList } from './bench-options.js';
import { examples } from './examples.js';
import { backendList, dtypeList, kernelName, positiveSeconds } from './kernels-parse.js';
import { threadCount, wholeNumber } from './numbers.js';
import type { KernelName } from '../model/kernels.js';
import type { KernelsTyped } from './kernels-typed.js';

export function define(command: Command): void {
  const sizes = (flag: string, what: string) =>
    new Option(`${flag} <n...>`, what).argParser(sizeList(flag, true));
  command
    .argument(
      '[names...]',
      'kernels (default: all): gemm linear conv2d lstm layernorm-gelu attention softmax rmsnorm swiglu rope embedding sampling',
      (text: string, before: KernelName[] = []) => [...before, ...kernelName(text)],
    )
    .option(
      '--from-model <spec>',
      "the operations of a model's prefill and decode: preset, config.json or folder",
    )
    .addOption(sizes('--batch-size', 'sequences; several sweep'))
    .addOption(sizes('--seq-len', 'tokens of a sequence; several sweep'))
    .addOption(sizes('--context-len', 'with --from-model: prompt lengths, and tokens in the cache at decode'))
    .addOption(sizes('--hidden-size', 'width; several sweep'))
    .addOption(
      new Option(
        '--dtype <dtype...>',
        'float32, tfloat32, float16, bfloat16, float8, int8; several sweep (default: bfloat16 on a GPU, float32 on a CPU)',
      ).argParser(dtypeList),
    )
    .addOption(
      new Option(
        '--backend <name...>',
        "PyTorch's attention: flash, efficient, cudnn, math, all (default: its own choice)",
      ).argParser(backendList),
    )
    .option(
      '--runs <n>',
      'timed runs of each, at least; more until the mean is known within 1 %',
      wholeNumber('--runs', 1, 100),
      100,
    )
    .option('--max-seconds <s>', 'longest time for one case', positiveSeconds, 2)
    .option('--device <device>', 'cuda, cuda:1, cpu (default: the first GPU, else the CPU)')
    .addOption(
      new Option(
        '--engine <name>',
        'torch, or onnx (embedded, CPU); default: torch where it finds a GPU',
      ).choices(['torch', 'onnx']),
    )
    .option('--threads <n>', 'CPU threads that compute (engine onnx)', threadCount)
    .option('--no-check', 'do not compare each kernel once with a float64 reference')
    .option('--no-graph', 'launch every run by itself, also kernels shorter than their launch')
    .option(
      '--trace',
      'store the operators and kernels behind each case, too: a few runs more under the profiler',
    )
    .option('--seed <n>', 'of the random inputs (engine torch)', wholeNumber('--seed', 0, 1), 0)
    .option('--python <path>', 'interpreter with torch (default: the one on PATH)')
    .option('--name <name>', 'name the session')
    .addOption(new Option('--tag <tag...>', 'tag the session').default([], 'none'))
    .option('--output <folder>', 'where kernel_results.csv and kernel_results.json go', './results')
    .option('--json', 'print one inferscope/kernels document')
    .option('--quiet', 'no progress on stderr')
    .addHelpText(
      'after',
      examples(
        [
          'inferscope kernels attention --batch-size 1,8,64 --backend all',
          'a sweep of one kernel over PyTorch’s backends',
        ],
        [
          'inferscope kernels --from-model llama-3.1-8b --batch-size 1,8',
          'every operation of a model, and what they add up to',
        ],
      ),
    )
    .action(async (names: KernelName[], typed: KernelsTyped) => {
      const { kernelsCommand } = await import('./kernels-command.js');
      await kernelsCommand(names, typed);
    });
}
