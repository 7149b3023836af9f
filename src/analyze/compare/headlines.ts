import type { CompareResult } from '../../model/documents/compare.js';
import { formatNs, formatRate, formatShare } from '../trace/words.js';

type Parts = Omit<CompareResult, 'headlines'>;

/** What changed, in sentences: the last session against the first; of more than two, from end to end. */
export function compareHeadlines(parts: Parts): CompareResult['headlines'] {
  const names = parts.sessions.map(({ name, id }) => name ?? id);
  const last = names.length - 1;
  return [
    ...stageLines(parts, last),
    ...parts.attention
      .filter(({ switched }) => switched)
      .map(({ text }) => ({ id: 'attention_switched', text })),
    ...tileLines(parts),
    ...kernelLine(parts),
    ...environmentLine(parts),
  ];
}

function stageLines({ stages }: Parts, last: number): CompareResult['headlines'] {
  return stages
    .filter(({ phase }) => ['prefill', 'decode', 'mixed', 'outside'].includes(phase))
    .flatMap(({ phase, values, changes }) => {
      const [from, to, change] = [values[0], values[last], changes[last]];
      if (!from || !to || !change || change.ratio === null) return [];
      const faster = change.delta_ms < 0;
      const factor = faster ? 1 / change.ratio : change.ratio;
      const by = factor >= 1.995 ? `${factor.toFixed(1)} times` : formatShare(Math.abs(change.ratio - 1));
      const sure = { true: '', false: ', within the spread of both', null: ', spread not known' }[
        String(change.significant)
      ];
      const texts = [
        `${phase}: ${formatNs(1e6 * (from.duration_ms.value ?? 0))} → ${formatNs(1e6 * (to.duration_ms.value ?? 0))}, ${by} ${faster ? 'faster' : 'slower'}${sure}`,
      ];
      if (from.idle_share !== null && to.idle_share !== null) {
        texts.push(`idle ${formatShare(from.idle_share)} → ${formatShare(to.idle_share)}`);
      }
      if (from.launches !== null && to.launches !== null) {
        texts.push(`launches ${formatRate(from.launches)} → ${formatRate(to.launches)}`);
      }
      return [{ id: 'stage', text: `${texts.join('; ')}.` }];
    });
}

function tileLines({ gemm_tiles }: Parts): CompareResult['headlines'] {
  const phases = [...new Set(gemm_tiles.map(({ phase }) => phase))];
  return phases.map((phase) => {
    const rows = gemm_tiles.filter((row) => row.phase === phase);
    const [first] = rows;
    const changed = rows.reduce((sum, { count }) => sum + count, 0);
    const text =
      first!.matched_by === 'place'
        ? `${changed} GEMMs of a ${phase} instance run with another tile; most often ${first!.tiles.join(' → ')}.`
        : `A ${phase} instance has another number of GEMMs: ${rows
            .slice(0, 4)
            .map(({ tiles }) => tiles.join(' → '))
            .join(', ')}.`;
    return { id: 'gemm_tiles', text };
  });
}

function kernelLine({ kernel_counts, what }: Parts): CompareResult['headlines'] {
  const told = (['new', 'gone', 'faster', 'slower', 'more', 'fewer'] as const)
    .filter((status) => (kernel_counts[status] ?? 0) > 0)
    .map((status) => `${kernel_counts[status]} ${status}`);
  const noun = what === 'trace' ? 'Kernels' : 'Operators';
  return told.length > 0
    ? [{ id: 'kernels', text: `${noun}: ${told.join(', ')}; ${kernel_counts.same ?? 0} the same.` }]
    : [];
}

function environmentLine({ environment }: Parts): CompareResult['headlines'] {
  const telling = environment.filter(({ could_explain }) => could_explain !== null);
  if (telling.length === 0) {
    return [{ id: 'environment', text: 'Nothing that is known of workload, software and machine differs.' }];
  }
  const words = telling
    .slice(0, 4)
    .map(({ label, values }) => `${label} ${values.map((v) => v ?? '–').join(' → ')}`);
  const rest = telling.length > 4 ? ` and ${telling.length - 4} more` : '';
  return [{ id: 'environment', text: `What differs and could explain it: ${words.join(', ')}${rest}.` }];
}
