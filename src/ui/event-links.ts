import { barParts, classOfBar, gapParts, isBarOf } from '../model/bars.js';
import type { ExplainResult } from '../model/documents/explain.js';
import { findingAnchor } from '../views/findings.js';
import { formatMs, formatPercent } from '../vocabulary/format.js';
import { perInstance } from '../vocabulary/stages.js';
import { explainedKey } from './timeline/explained-key.js';
import type { EventLinks } from './timeline/shown.js';

/** Bars of a kind of event: host time has one per activity, and a stage has all. */
const maxBars = 3;
const minShare = 0.005;

/**
 * Links from events of the timeline back to the waterfall bars and findings that contain their time.
 * @param page path of the overview; '' on the page itself
 */
export function eventLinks({ stages, findings }: ExplainResult, page: string): EventLinks {
  const links: Record<string, { text: string; link: string }[]> = {};
  for (const { kind, bars, name } of stages) {
    // Ranges marked by the program have no stage kind of their own.
    if (name !== null) continue;
    const barsByKey = new Map<string, typeof bars>();
    for (const bar of bars)
      for (const [table, part] of eventsOfBar(bar.id)) {
        const key = explainedKey(kind, table, part);
        barsByKey.set(key, [...(barsByKey.get(key) ?? []), bar]);
      }
    barsByKey.set(explainedKey(kind, 'stages', ''), bars);
    for (const [key, keyBars] of barsByKey) {
      const ids = new Set(keyBars.map(({ id }) => id));
      links[key] ??= [
        ...keyBars
          .toSorted((a, b) => b.ms - a.ms)
          .filter(({ share }, index) => index === 0 || (index < maxBars && share >= minShare))
          .map(({ label, ms, share }) => ({
            text: `${label}: ${formatMs(ms)} ${perInstance(kind)}, ${formatPercent(share)}`,
            link: `${page}#waterfall`,
          })),
        ...findings
          .filter((finding) => finding.stage === kind && finding.bars.some((id) => ids.has(id)))
          .map(({ id, title }) => ({ text: title, link: `${page}#${findingAnchor(id)}` })),
      ];
    }
  }
  return links;
}

/** Tables and parts of the events with a bar's time. */
function eventsOfBar(id: string): [table: string, part: string][] {
  const cause = gapParts.find((part) => isBarOf(id, part));
  if (cause) return [['gaps', cause]];
  if (isBarOf(id, 'exposed_comm')) return [['kernels', 'communication']];
  // "exposed_copy.htod_pageable" has copies of the direction HtoD.
  if (isBarOf(id, 'exposed_copy')) return [['copies', barParts(id).tail.split('_')[0]!]];
  const opClass = classOfBar(id);
  return opClass === null
    ? []
    : [
        ['kernels', opClass],
        ['ops', opClass],
      ];
}
