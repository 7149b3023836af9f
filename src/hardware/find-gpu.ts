import { gpuSheet } from './gpu-peaks.js';
import { gpuSheets } from './gpu-sheets.js';
import type { GpuSheet } from './gpu-sheet.js';

interface FoundGpu {
  sheet: GpuSheet;
  /** As drivers report it. */
  name: string;
  /** Other products that are called the same; the common form was taken. */
  others: string[];
}

/** Where several products share a name, the form that most servers have. */
const commonForms: ReadonlySet<string> = new Set(['NVIDIA H100 80GB HBM3', 'NVIDIA A100-SXM4-80GB']);

const vendorWords = new Set(['nvidia', 'tesla', 'geforce', 'amd', 'instinct', 'rtx', 'generation']);

/**
 * The GPU of a name as people type it: the driver's own, or some words of it (A10G, h100-pcie, "RTX 4090"). A short name of
 * several is the common form, or any where their memory is the same.
 * @returns the candidates where none of them is the common form; empty for an unknown name
 */
export function findGpuSheet(typed: string): FoundGpu | GpuSheet[] {
  const exact = gpuSheet(typed);
  if (exact) return { sheet: exact, name: typed.trim(), others: [] };
  const wanted = words(typed);
  const found = gpuSheets.filter((sheet) => sheet.names.some((name) => holds(words(name), wanted)));
  const same = found.filter((sheet) => sheet.names.some((name) => words(name).length === wanted.length));
  const candidates = same.length > 0 ? same : found;
  const common = candidates.find(({ names }) => names.some((name) => commonForms.has(name)));
  const [first] = candidates;
  const chosen =
    common ?? (candidates.every(({ memoryGb }) => memoryGb === first?.memoryGb) ? first : undefined);
  if (!chosen) return candidates;
  const others = candidates.flatMap(({ names: [name] }) => (name === undefined ? [] : [name]));
  return { sheet: chosen, name: chosen.names[0]!, others: others.filter((name) => name !== chosen.names[0]) };
}

/** "H100: NVIDIA H100 80GB HBM3 (not NVIDIA H100 PCIe, …)"; null where the name leaves no choice. */
export function chosenGpuWords(typed: string, { name, others }: FoundGpu): string | null {
  return others.length === 0 ? null : `${typed.trim()}: ${name} (not ${others.join(', ')})`;
}

function words(name: string): string[] {
  const all = name
    .toLowerCase()
    .replace(/\brtx(?=\d)/, 'rtx ')
    .split(/[\s_-]+/)
    .filter((word) => word !== '');
  const own = all.filter((word) => !vendorWords.has(word));
  return own.length > 0 ? own : all;
}

function holds(name: readonly string[], wanted: readonly string[]): boolean {
  return wanted.length > 0 && wanted.every((word) => name.includes(word));
}
