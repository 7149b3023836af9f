import { formatQuantity, plural } from '../../vocabulary/format.js';
import { shapeLabel } from '../../vocabulary/gemm-shape.js';
import { known, orNull, partFrom, type StoredFacts, type TopicAnswer } from './stored-facts.js';

const maxShapes = 8;

/** "Which GEMM shapes are there?"; null for questions about their tiles, and without recorded shapes. */
export async function gemmShapes({ session, question }: StoredFacts): Promise<TopicAnswer | null> {
  if (
    !/\bshapes?\b|\bsizes?\b/i.test(question.text) ||
    /\b(?:mis)?align|\bpad|\btiles?\b/i.test(question.text)
  )
    return null;
  const { analyzeGemms } = await import('../../facts/gemms/gemms.js');
  const gemms = (await orNull(() => analyzeGemms(session)))?.data.gemms ?? [];
  // Sources repeat the shapes of a run; the first has the longest times, or the most FLOPs.
  const lines = new Map<string, string>();
  for (const gemm of gemms) {
    const name = `${shapeLabel(gemm)}${gemm.dtype === null ? '' : ` ${gemm.dtype}`}`;
    if (!lines.has(name))
      lines.set(
        name,
        `- ${name}: ${plural(gemm.calls, 'call')}, ${formatQuantity(gemm.flop, 'FLOP')} per call`,
      );
  }
  if (lines.size === 0) return null;
  const more = lines.size > maxShapes ? [`- and ${lines.size - maxShapes} more (inferscope gemm)`] : [];
  return known(partFrom('gemms', `${plural(lines.size, 'GEMM shape')} (M×N×K):`, lines.size), [
    partFrom('gemms', [...lines.values()].slice(0, maxShapes).concat(more).join('\n'), lines.size),
  ]);
}
