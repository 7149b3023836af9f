import { runTool } from '../doctor/run-tool.js';
import { kernelFunction } from '../../vocabulary/kernel-label.js';
import type { KernelChoice } from './run-options.js';

/** Maximum kernel names per stage: the remaining kernels are short, and every name costs seconds. */
const namesPerStage = 8;
const statsMs = 10 * 60_000;

/**
 * Hot kernels of each stage of an nsys report, by `nsys stats` (without importing it).
 * Null when unknown: then ncu profiles every name.
 */
export async function findHotKernels(nsysPath: string, report: string): Promise<KernelChoice | null> {
  const args = ['stats', '--report', 'nvtx_kern_sum', '--report', 'cuda_gpu_kern_sum', '--format', 'csv'];
  const run = await runTool(nsysPath, [...args, '--output', '-', report], { timeoutMs: statsMs });
  return run.ok ? chooseKernels(run.stdout) : null;
}

/**
 * @param stats CSV of nvtx_kern_sum and cuda_gpu_kern_sum. Ranges named inferscope:<kind>:… mark stages;
 * load and warmup are skipped; without such ranges the hottest names of the whole run are used.
 */
export function chooseKernels(stats: string): KernelChoice | null {
  const stages = new Map<string, Map<string, number>>();
  const totals = new Map<string, number>();
  let header: string[] = [];
  for (const line of stats.split('\n')) {
    const fields = csvFields(line.trim());
    if (fields.includes('Total Time (ns)')) {
      header = fields;
      continue;
    }
    if (fields.length !== header.length) continue;
    const field = (column: string) => fields[header.indexOf(column)];
    const kernel = field('Kernel Name') ?? field('Name');
    const ns = Number(field('Total Time (ns)'));
    if (!kernel || !Number.isFinite(ns)) continue;
    const name = kernelFunction(kernel);
    if (header.includes('NVTX Range')) {
      const kind = /(?:^|:)inferscope:(prefill|decode|mixed|sampling)\b/.exec(field('NVTX Range') ?? '')?.[1];
      if (!kind) continue;
      if (!stages.has(kind)) stages.set(kind, new Map());
      addTime(stages.get(kind)!, name, ns);
    } else addTime(totals, name, ns);
  }
  if (stages.size > 0) {
    const names = new Set([...stages.values()].flatMap((times) => hottestNames(times)));
    return { names: [...names], source: `by nsys, of ${[...stages.keys()].sort().join(', ')}` };
  }
  return totals.size > 0
    ? { names: hottestNames(totals, 2 * namesPerStage), source: 'by nsys, of the whole run' }
    : null;
}

function addTime(times: Map<string, number>, name: string, ns: number): void {
  times.set(name, (times.get(name) ?? 0) + ns);
}

function hottestNames(times: Map<string, number>, count = namesPerStage): string[] {
  return [...times]
    .sort((a, b) => b[1] - a[1])
    .slice(0, count)
    .map(([name]) => name);
}

/** One line of CSV with quoted fields; nsys writes no line breaks in them. */
function csvFields(line: string): string[] {
  return [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
    ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? '',
  );
}
