import type { Document } from '../model/document.js';
import type { CapturesResult } from '../model/documents/captures.js';
import type { Block, Section, View } from './block.js';
import { collectiveBlocks } from './collectives.js';
import { counterBlocks } from './counters.js';
import { gemmBlocks } from './gemms.js';
import { utilizationBlocks } from './utilization.js';
import { contextSections, traceLead, workSections } from './trace.js';

/** Captures of other tools: a timeline, Nsight Compute's kernels, matrix products, collectives; one of them at least. */
export function capturesView(captures: Partial<CapturesResult> & Pick<CapturesResult, 'session'>): View {
  const { session, trace = null, steps = null, counters, gemms, collectives } = captures;
  const document = trace ?? steps ?? counters ?? gemms ?? collectives;
  if (!document) throw new Error(`session ${session.id} has no captures`);
  // Issues of the session are in each of its documents.
  const saidOnce = <T>(one: Document<T>): Document<T> => ({
    ...one,
    issues: one.issues.filter(
      ({ code, text }) => !trace?.issues.some((known) => known.code === code && known.text === text),
    ),
  });
  // Next to a timeline they are details.
  const level = trace || steps ? 2 : 1;
  return {
    command: session.kind,
    title: session.title,
    document,
    session,
    lead: trace
      ? [{ t: 'issues', issues: trace.issues }, ...traceLead(trace)]
      : [
          ...(steps ? utilizationBlocks(steps) : []),
          {
            t: 'text',
            level: 3,
            text: 'The session has no timeline, so phases and idle time are unknown.',
          },
        ],
    sections: [
      ...(trace ? workSections(trace) : []),
      ...section('counters', 'Nsight Compute', level, counters ? counterBlocks(saidOnce(counters)) : []),
      ...section('gemms', 'Matrix multiplications', level, gemms ? gemmBlocks(saidOnce(gemms)) : []),
      ...section(
        'collectives',
        'Collectives',
        level,
        collectives ? collectiveBlocks(saidOnce(collectives)) : [],
      ),
      ...(trace ? contextSections(trace) : []),
    ],
  };
}

const section = (id: string, title: string, level: 1 | 2, blocks: readonly Block[]): Section[] =>
  blocks.length === 0 ? [] : [{ id, title, level, blocks }];
