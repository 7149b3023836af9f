import type { NcuOptions, KernelChoice } from './run-options.js';

/**
 * Arguments of `ncu` before the program. A replay takes seconds per kernel, so kernels are limited, but metrics never: one launch (by
 * default) of each kernel name and launch size (`--filter-mode per-launch-config`), only of hot names if known. Clocks are not locked,
 * since others may share the machine.
 * @param report path without `.ncu-rep`
 */
export function ncuArguments(report: string, options: NcuOptions, choice: KernelChoice | null): string[] {
  const kernel = options.kernel ?? (choice && choice.names.length > 0 ? nameFilter(choice.names) : null);
  return [
    `--export=${report}`,
    '--force-overwrite',
    '--target-processes=all',
    `--set=${options.set}`,
    '--clock-control=none',
    '--nvtx',
    ...options.nvtx.flatMap((filter) => ['--nvtx-include', filter]),
    ...(kernel === null ? [] : ['--kernel-name-base', 'function', '--kernel-name', `regex:${kernel}`]),
    ...(options.profilerApi ? ['--profile-from-start', 'off'] : []),
    '--filter-mode=per-launch-config',
    `--launch-count=${options.launchCount}`,
    ...options.args,
  ];
}

/** How an ncu run was limited, for the outcome and the session. */
export function ncuBounds(options: NcuOptions, choice: KernelChoice | null): string {
  const launches = options.launchCount === 1 ? 'one launch' : `${options.launchCount} launches`;
  const selection =
    options.kernel !== null
      ? `kernels that match ${options.kernel}`
      : choice && choice.names.length > 0
        ? `the ${choice.names.length} hottest kernel names (${choice.source})`
        : 'all kernels (the hot ones are unknown)';
  const where = [
    ...(options.nvtx.length > 0 ? [`inside NVTX ranges ${options.nvtx.join(', ')}`] : []),
    ...(options.profilerApi ? ['between cudaProfilerStart and cudaProfilerStop'] : []),
  ];
  const range = where.length > 0 ? `, ${where.join(' and ')}` : '';
  return `ncu: ${launches} of each launch size of ${selection}${range}; all metrics of --set ${options.set}; clocks not locked.`;
}

/** `(^|::)(a|b)$`: ncu's function names have a namespace or not, depending on the version. */
function nameFilter(names: readonly string[]): string {
  return `(^|::)(${names.map((name) => name.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')})$`;
}
