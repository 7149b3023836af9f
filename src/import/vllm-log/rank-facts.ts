import type { VllmLogBytes, VllmRankFacts } from '../../model/vllm-log.js';
import { excerpt, type LogLine } from './lines.js';
import { secondPatterns, sizePatterns } from './patterns.js';
import { groupRank, type LogProcess, processAt } from './process.js';

/** Figures that each worker process printed, by rank. */
export function rankFacts(lines: LogLine[], tensorParallelSize: number): VllmRankFacts[] {
  const workers = new Map<string, { process: LogProcess; facts: VllmRankFacts }>();
  const workerAt = (text: string, index: number) => {
    const process = processAt(text, index);
    const key = `${process.data_parallel_rank} ${process.name} ${process.rank ?? ''} ${process.pid ?? ''}`;
    let worker = workers.get(key);
    if (!worker) {
      worker = { process, facts: noFacts(process) };
      workers.set(key, worker);
    }
    return worker.facts;
  };

  for (const line of lines) {
    for (const { field, pattern, unit } of sizePatterns) {
      for (const match of line.text.matchAll(pattern)) {
        const facts = workerAt(line.text, match.index);
        facts[field] = moreExact(facts[field], bytesOf(line, match, unit));
        if (field === 'consumed') facts.activation_includes_graphs = true;
      }
    }
    for (const { field, pattern } of secondPatterns) {
      for (const match of line.text.matchAll(pattern)) {
        workerAt(line.text, match.index)[field] = { value: Number(match[1]), ...evidence(line, match) };
      }
    }
  }
  return numberRanks([...workers.values()], tensorParallelSize);
}

/** The size that a pattern matched in a line. */
export function bytesOf(line: LogLine, match: RegExpMatchArray, unit?: 'bytes'): VllmLogBytes {
  const text = match[1]!;
  if (unit === 'bytes') return { value: Number(text), rounding_bytes: 0, ...evidence(line, match) };
  // Python's round() drops trailing zeros: "0.9" and "1.0" were rounded to two digits like the other numbers of their
  // line.
  const digits = Math.max(2, text.split('.')[1]?.length ?? 0);
  return {
    value: Math.round(Number(text) * 2 ** 30),
    rounding_bytes: Math.ceil(0.5 * 10 ** -digits * 2 ** 30),
    ...evidence(line, match),
  };
}

function evidence(line: LogLine, match: RegExpMatchArray): { line: string; line_number: number } {
  return { line: excerpt(line.text, match.index ?? 0, match[0].length), line_number: line.number };
}

/** The later line, unless the earlier one has the same value with more digits. */
function moreExact(earlier: VllmLogBytes | null, later: VllmLogBytes): VllmLogBytes {
  if (!earlier || earlier.rounding_bytes >= later.rounding_bytes) return later;
  return Math.abs(earlier.value - later.value) <= earlier.rounding_bytes + later.rounding_bytes
    ? earlier
    : later;
}

function noFacts(process: LogProcess): VllmRankFacts {
  return {
    rank: 0,
    rank_source: 'single',
    process: process.name,
    pid: process.pid,
    data_parallel_rank: process.data_parallel_rank,
    weights: null,
    non_torch: null,
    activation_peak: null,
    activation_includes_graphs: false,
    torch_peak: null,
    consumed: null,
    kv_cache: null,
    cuda_graphs: null,
    cuda_graphs_estimate: null,
    device_total: null,
    device_free_at_start: null,
    device_used_at_start: null,
    budget: null,
    load_seconds: null,
    graph_capture_seconds: null,
  };
}

/**
 * Ranks from prefixes if present. Otherwise (vLLM up to the end of V0) the main process is rank 0 and the workers were
 * started in the order of their process ids.
 */
function numberRanks(
  workers: { process: LogProcess; facts: VllmRankFacts }[],
  tensorParallelSize: number,
): VllmRankFacts[] {
  const engines = new Map<number, { process: LogProcess; facts: VllmRankFacts }[]>();
  for (const worker of workers) {
    const { data_parallel_rank: dp } = worker.process;
    engines.set(dp, [...(engines.get(dp) ?? []), worker]);
  }
  return [...engines.values()].flatMap((group) => {
    const isMain = (process: LogProcess) => process.name === '' || process.isEngineCore;
    const ordered = group.sort(
      (a, b) =>
        Number(!isMain(a.process)) - Number(!isMain(b.process)) ||
        (a.process.pid ?? 0) - (b.process.pid ?? 0),
    );
    return ordered
      .map(({ process, facts }, i): VllmRankFacts => {
        const reported = groupRank(process, tensorParallelSize);
        if (reported !== null) return { ...facts, rank: reported, rank_source: 'log' };
        return { ...facts, rank: i, rank_source: group.length === 1 ? 'single' : 'order' };
      })
      .sort((a, b) => a.rank - b.rank);
  });
}
