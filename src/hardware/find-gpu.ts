import { gpuSheet } from './gpu-peaks.js';
import { gpuSheets } from './gpu-sheets.js';
import type { GpuSheet } from './gpu-sheet.js';

interface FoundGpu {
  sheet: GpuSheet;
  /** The driver's name. */
  name: string;
  /** Other products with the same name; the common form was chosen. */
  others: string[];
}

/** The most common server form among products that share a name. */
const commonForms: ReadonlySet<string> = new Set(['NVIDIA H100 80GB HBM3', 'NVIDIA A100-SXM4-80GB']);

const vendorWords = new Set(['nvidia', 'tesla', 'geforce', 'amd', 'instinct', 'rtx', 'generation']);

/**
 * The GPU for a typed name: the driver's name, or some words of it (A10G, h100-pcie, "RTX 4090"). A short name of
 * several products is the common form, or any of them if their memory is equal.
 * @returns the candidates if none is the common form; empty for an unknown name
 */
export function findGpuSheet(name: string): FoundGpu | GpuSheet[] {
  const exact = gpuSheet(name);
  if (exact) return { sheet: exact, name: name.trim(), others: [] };
  const requestedWords = words(name);
  const matches = gpuSheets.filter((sheet) =>
    sheet.names.some((name) => hasWords(words(name), requestedWords)),
  );
  const sameLength = matches.filter((sheet) =>
    sheet.names.some((name) => words(name).length === requestedWords.length),
  );
  const candidates = sameLength.length > 0 ? sameLength : matches;
  const common = candidates.find(({ names }) => names.some((name) => commonForms.has(name)));
  const [first] = candidates;
  const chosen =
    common ?? (candidates.every(({ memoryGb }) => memoryGb === first?.memoryGb) ? first : undefined);
  if (!chosen) return candidates;
  const otherNames = candidates.flatMap(({ names: [name] }) => (name === undefined ? [] : [name]));
  return {
    sheet: chosen,
    name: chosen.names[0]!,
    others: otherNames.filter((name) => name !== chosen.names[0]),
  };
}

/** "H100: NVIDIA H100 80GB HBM3 (not NVIDIA H100 PCIe, …)"; null if the name is unambiguous. */
export function chosenGpuWords(requested: string, { name, others }: FoundGpu): string | null {
  return others.length === 0 ? null : `${requested.trim()}: ${name} (not ${others.join(', ')})`;
}

function words(name: string): string[] {
  const all = name
    .toLowerCase()
    .replace(/\brtx(?=\d)/, 'rtx ')
    .split(/[\s_-]+/)
    .filter((word) => word !== '');
  const modelWords = all.filter((word) => !vendorWords.has(word));
  return modelWords.length > 0 ? modelWords : all;
}

function hasWords(name: readonly string[], requestedWords: readonly string[]): boolean {
  return requestedWords.length > 0 && requestedWords.every((word) => name.includes(word));
}
