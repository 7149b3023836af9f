import { componentLabels, sampledMemoryLabels } from '../../vocabulary/memory-components.js';
import { knownEngine } from '../../llm/memory-request.js';
import { hasSubject } from '../../model/subjects.js';
import { findingText } from './finding-parts.js';
import { decoderModel } from '../../facts/model-work.js';
import { estimateMemory } from '../../llm/memory-estimate.js';
import {
  notKnown,
  capture,
  hasTable,
  partFrom,
  type StoredFacts,
  known,
  type TopicAnswer,
} from './stored-facts.js';
import { formatBytes, formatGb, formatPercent } from '../../vocabulary/format.js';
import { capitalize } from '../../vocabulary/sentence.js';
import { lengthWords } from '../../vocabulary/workload.js';

interface Component {
  component: string;
  bytes: number;
}

const componentWords: readonly [RegExp, RegExp][] = [
  [/\bkv[- ]?cache\b|\bkv\b/i, /^kv_cache/],
  [/\bweights?\b|\bparameters\b/i, /weights/],
  [/\bactivations?\b/i, /activation/],
  [/\boverhead\b|\bcontext\b|\bframework\b/i, /overhead|context|runtime|framework|non_torch/],
];

/** "What takes the memory?", "how big is the KV cache?": components at the peak, else samples, else the model's arithmetic. */
export async function answerMemoryUse(facts: StoredFacts): Promise<TopicAnswer> {
  const parts = await componentsOf(facts);
  if (parts.length === 0) return sampledMemory(facts);
  const ordered = parts.toSorted((a, b) => b.bytes - a.bytes);
  const total = parts.reduce((sum, { bytes }) => sum + bytes, 0);
  const componentPattern = componentWords.find(([words]) => words.test(facts.question.text))?.[1];
  const matches = componentPattern ? ordered.filter(({ component }) => componentPattern.test(component)) : [];
  const lines = ordered.map(({ component, bytes }) => `- ${componentWord(component)}: ${formatGb(bytes)}`);
  const list = partFrom(
    'memory profile',
    `Memory at the peak by component:\n${lines.join('\n')}`,
    lines.length,
  );
  if (componentPattern && matches.length === 0)
    return notKnown('This session did not record that component.', capture.memory, [list]);
  const failure = facts.explained.findings.find(({ rule }) => rule === 'benchmark_flags');
  if (failure && /\bout[- ]of[- ]memory\b|\boom\b|\ballocat/i.test(facts.question.text))
    return known(findingText(failure), [list]);
  const [first, second] = ordered;
  const text =
    matches.length > 0
      ? matches
          .map(
            ({ component, bytes }) =>
              `${capitalize(componentWord(component))}: ${formatGb(bytes)}, ${formatPercent(bytes / total)} of the ${formatGb(total)} at the peak.`,
          )
          .join(' ')
      : `${first!.bytes > total / 2 ? 'Most of it is' : 'The largest part is'} ${componentWord(first!.component)}: ${formatGb(first!.bytes)} of ${formatGb(total)} at the peak${second ? `; then ${componentWord(second.component)}, ${formatGb(second.bytes)}` : ''}.`;
  return known(partFrom('memory profile', text), [list]);
}

export const componentWord = (component: string): string =>
  (componentLabels as Record<string, string | undefined>)[component] ??
  sampledMemoryLabels[component] ??
  component.replaceAll('_', ' ').replace(/^kv\b/, 'KV');

async function componentsOf(facts: StoredFacts): Promise<Component[]> {
  if (hasSubject(facts.session.manifest, 'memory')) {
    const { analyzeMemory } = await import('../../facts/memory-profile/memory.js');
    return (await analyzeMemory(facts.session)).data.profile.memory_breakdown.components;
  }
  if (!hasSubject(facts.session.manifest, 'profile')) return [];
  const { readMemory } = await import('../../facts/memory.js');
  const { workload } = facts.session.manifest;
  return (workload && (await readMemory(facts.database, workload)))?.breakdown ?? [];
}

interface PeakRow extends Record<string, unknown> {
  kind: string;
  peak_bytes: number;
}

/** Peaks from samples and allocators, if the session is not a memory profile. */
async function sampledMemory(facts: StoredFacts): Promise<TopicAnswer> {
  const wanted = componentWords.find(([words]) => words.test(facts.question.text))?.[1];
  const none = 'The use of memory was not recorded in this session.';
  if (!hasTable(facts, 'memory')) return answerFromModel(facts) ?? notKnown(none, capture.memory);
  const sql =
    'SELECT kind, max(bytes) AS peak_bytes FROM memory GROUP BY kind ORDER BY peak_bytes DESC NULLS LAST';
  const rows = (await facts.database.query<PeakRow>(sql)).filter((row) => row.peak_bytes !== null);
  const [first] = rows;
  if (!first) return answerFromModel(facts) ?? notKnown(none, capture.memory);
  const list = rows
    .slice(0, 6)
    .map(({ kind, peak_bytes: bytes }) => `- ${componentWord(kind)}: ${formatBytes(Number(bytes))} at most`);
  const part = (text: string) => ({ text, sql, from: 'sql', rows: rows.length });
  const all = part(`Memory as recorded:\n${list.join('\n')}`);
  const matching = wanted ? rows.find(({ kind }) => wanted.test(kind)) : undefined;
  if (matching)
    return known(
      part(
        `${capitalize(componentWord(matching.kind))}: ${formatBytes(Number(matching.peak_bytes))} at most.`,
      ),
      [all],
    );
  if (wanted)
    return notKnown('The memory of each component was not recorded in this session.', capture.memory, [all]);
  return known(
    part(`Peak memory in use: ${formatBytes(Number(first.peak_bytes))} (${componentWord(first.kind)}).`),
    [all],
  );
}

/** Components of any batch and length. */
const fixedComponents = /weights|framework|context/;

/** Not measured: calculated from the model's arithmetic for the sizes of the run, if the session records them. */
function answerFromModel({ session: { manifest }, question }: StoredFacts): TopicAnswer | null {
  const { workload } = manifest;
  const model = workload ? decoderModel(workload) : null;
  if (!workload || model === null || 'reason' in model) return null;
  const hasSizes = workload.batch_size !== null && workload.input_len !== null;
  const { lines: all } = estimateMemory(model.architecture, {
    engine: knownEngine(workload.engine.name) ?? 'transformers',
    batchSize: workload.batch_size ?? 1,
    inputLen: workload.input_len ?? 1,
    outputLen: workload.output_len ?? 0,
    storage: model.storage,
    parallel: { tensor: workload.tensor_parallel_size },
  });
  const lines = all.filter(({ component }) => hasSizes || fixedComponents.test(component));
  const total = lines.reduce((sum, { bytes }) => sum + bytes, 0);
  const wanted = componentWords.find(([words]) => words.test(question.text))?.[1];
  const matching = lines
    .filter(({ component }) => !wanted || wanted.test(component))
    .toSorted((a, b) => b.bytes - a.bytes)[0];
  if (!matching) return null;
  const part = (text: string) => partFrom('estimate', text, lines.length);
  const list = lines.map(({ component, bytes }) => `- ${componentWord(component)}: ${formatGb(bytes)}`);
  const size = hasSizes
    ? `batch ${workload.batch_size}, ${lengthWords(workload.input_len ?? 1, workload.output_len ?? 0)}`
    : 'without KV cache and activations: the session does not record batch size and length';
  return known(
    part(
      `Memory was not measured here; computed from the model: ${componentWord(matching.component)} ${formatGb(matching.bytes)} of ${formatGb(total)} (${size}).`,
    ),
    [part(`By component:\n${list.join('\n')}`), part(`To measure it: ${capture.memory}`)],
  );
}
