import type { VllmLogFacts } from '../../model/vllm-log.js';
import { argumentsLine, configLine, engineFacts } from './engine-facts.js';
import { excerpt, type LogLine, logLines } from './lines.js';
import { failurePatterns } from './patterns.js';
import { processAt } from './process.js';
import { bytesOf, rankFacts } from './rank-facts.js';

/**
 * Memory figures from the log of a vLLM engine: per rank, in bytes, each figure with its line. Reads logs of every
 * version from 0.4 on, V0 and V1, with colors, progress bars and interleaved ranks. If a log has several starts, the
 * last one with memory figures is used.
 */
export function parseVllmLog(text: string): VllmLogFacts {
  return parseVllmLines(logLines(text));
}

/** Like parseVllmLog, for lines read one by one; irrelevant lines may be omitted. */
export function parseVllmLines(lines: LogLine[]): VllmLogFacts {
  const starts = engineStarts(lines);
  const factsOfStarts = starts.map(startFacts);
  const last = factsOfStarts.findLast((facts) => facts.reason === null) ?? factsOfStarts.at(-1)!;
  return { ...last, starts: starts.filter(hasConfig).length };
}

function startFacts(lines: LogLine[]): VllmLogFacts {
  const engine = engineFacts(lines);
  const ranks = rankFacts(lines, engine.tensor_parallel_size?.value ?? 1);
  const hasFigures = ranks.length > 0 || engine.kv_cache_tokens !== null || engine.kv_cache_blocks !== null;
  const checkpoint = firstMatch(lines, [/Checkpoint size: (\d+(?:\.\d+)?) GiB/]);
  const failure = firstMatch(lines, failurePatterns);
  return {
    ...engine,
    checkpoint: checkpoint && bytesOf(checkpoint.line, checkpoint.match),
    failure: failure && {
      value: failure.match[0].trim(),
      line: excerpt(failure.line.text, failure.match.index, failure.match[0].length),
      line_number: failure.line.number,
    },
    ranks,
    starts: 1,
    reason: hasFigures ? null : whyNoFigures(lines, engine.engine !== null),
  };
}

function whyNoFigures(lines: LogLine[], hasStart: boolean): string {
  if (lines.length === 0) return 'The log is empty.';
  if (hasStart) {
    return 'vLLM started but printed no memory figures: it exited before the model was loaded, or VLLM_LOGGING_LEVEL hides its INFO lines.';
  }
  const mentionsVllm = lines.some(({ text }) => /\bvllm\b|EngineCore|VllmWorker/i.test(text));
  return mentionsVllm
    ? 'The log mentions vLLM, but has neither an engine start line nor memory figures.'
    : 'It contains no vLLM log lines.';
}

/**
 * Splits a log into engine starts: a restarting container appends to its log, and a script may start several engines.
 * Engines of one data-parallel start print the same line, each from its own process.
 */
function engineStarts(lines: LogLine[]): LogLine[][] {
  const starts: LogLine[][] = [[]];
  let configured = new Set<string>();
  for (const line of lines) {
    const config = configLine.exec(line.text);
    const process = config ? processAt(line.text, config.index).name : '';
    const parallel = config !== null && /data_parallel_size=(?!1\b)\d/.test(line.text);
    const isNewStart = config ? configured.has(process) && !parallel : argumentsLine.test(line.text);
    if (isNewStart && configured.size > 0) {
      starts.push([]);
      configured = new Set();
    }
    if (config) configured.add(process);
    starts.at(-1)!.push(line);
  }
  return starts;
}

function hasConfig(lines: LogLine[]): boolean {
  return lines.some(({ text }) => configLine.test(text));
}

function firstMatch(lines: LogLine[], patterns: RegExp[]): { line: LogLine; match: RegExpExecArray } | null {
  for (const line of lines) {
    for (const pattern of patterns) {
      const match = pattern.exec(line.text);
      if (match) return { line, match };
    }
  }
  return null;
}
