import type { NsysOptions } from './run-options.js';

/**
 * Arguments of `nsys` before the program. nsys accepts no argument twice, so the user's arguments replace ours. Graph nodes are recorded one by one,
 * because by default a CUDA graph is one row and a decode stage looks empty. This has a cost: a step of 1100 nodes took 3.84 ms instead of
 * 2.96 on an H200 (--cuda-graph-trace=graph has none). CPU samples, context switches and OS calls are off: they multiply rows and slow the
 * host. With OS calls, context switches are recorded too: the two together show why a thread left its core (src/import/nsys/thread-delays.ts).
 * nsys always follows children that start another program. It follows children that only fork if that is requested, which nsys
 * documents as undefined behavior, so it is requested only for engines that need it.
 * @param report path without `.nsys-rep`
 * @param forks whether to trace forked processes
 */
export function nsysArguments(
  report: string,
  { trace, captureRange, args }: NsysOptions,
  forks = false,
): string[] {
  const defaults = [
    `--trace=${[...new Set(['cuda', 'nvtx', ...trace])].join(',')}`,
    '--cuda-graph-trace=node',
    '--sample=none',
    `--cpuctxsw=${trace.includes('osrt') ? 'process-tree' : 'none'}`,
    ...(forks ? [`${traceForksOption}=true`] : []),
    ...rangeArguments(captureRange),
    `--output=${report}`,
    '--force-overwrite=true',
  ];
  const givenOptions = new Set(args.map(optionOf));
  return ['profile', ...defaults.filter((arg) => !givenOptions.has(optionOf(arg))), ...args];
}

/** Option for processes between fork and exec; old versions of nsys lack it. */
export const traceForksOption = '--trace-fork-before-exec';

/** `--sample=none` -> `--sample`; short forms of our arguments map to the long ones. */
function optionOf(arg: string): string {
  const [name] = arg.split('=', 1) as [string];
  return shortForms[name] ?? name;
}

const shortForms: Record<string, string> = {
  '-t': '--trace',
  '-s': '--sample',
  '-c': '--capture-range',
  '-f': '--force-overwrite',
  '-o': '--output',
};

/** `nvtx NAME`: ranges of any domain; unregistered names need nsysEnvironment(). */
function rangeArguments(range: NsysOptions['captureRange']): string[] {
  if (range === null) return [];
  const end = '--capture-range-end=stop';
  if (range.kind === 'cudaProfilerApi') return ['--capture-range=cudaProfilerApi', end];
  return ['--capture-range=nvtx', `--nvtx-capture=${range.name}@*`, end];
}

/** torch.cuda.nvtx pushes plain strings, which nsys accepts as a capture range only with this setting. */
export function nsysEnvironment({ captureRange }: NsysOptions): Record<string, string> {
  return captureRange?.kind === 'nvtx' ? { NSYS_NVTX_PROFILER_REGISTER_ONLY: '0' } : {};
}
