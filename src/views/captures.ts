import type { Document } from '../model/document.js';
import type { CountersResult } from '../model/documents/counters.js';
import type { GemmsResult } from '../model/documents/gemms.js';
import type { TraceResult } from '../model/documents/trace.js';
import type { Block, Section, View } from './block.js';
import { counterBlocks } from './counters.js';
import { gemmBlocks } from './gemms.js';
import { contextSections, traceLead, workSections } from './trace.js';

/** What the captures of a session hold, one of them at least; null where it has no rows for it. */
export interface Captures {
  /** `kind`: the command that made it. */
  session: { id: string; kind: string; title: string; started_at: string };
  trace: Document<TraceResult> | null;
  counters: Document<CountersResult> | null;
  gemms: Document<GemmsResult> | null;
}

/** Captures of other tools: a timeline, Nsight Compute's kernels, matrix products. */
export function capturesView(captures: Captures): View {
  const { session, trace, counters, gemms } = captures;
  const document = trace ?? counters ?? gemms;
  if (!document) throw new Error(`session ${session.id} has no capture to show`);
  // Issues of the session are in each of its documents.
  const saidOnce = <T>(one: Document<T>): Document<T> => ({
    ...one,
    issues: one.issues.filter(
      ({ code, text }) => !trace?.issues.some((known) => known.code === code && known.text === text),
    ),
  });
  // Next to a timeline they are details.
  const level = trace ? 2 : 1;
  return {
    command: session.kind,
    title: session.title,
    document,
    session,
    lead: trace
      ? [{ t: 'issues', issues: trace.issues }, ...traceLead(trace)]
      : [
          {
            t: 'text',
            level: 3,
            text: 'The session has no timeline, so phases and idle time are not known.',
          },
        ],
    sections: [
      ...(trace ? workSections(trace) : []),
      ...section('counters', 'Nsight Compute', level, counters ? counterBlocks(saidOnce(counters)) : []),
      ...section('gemms', 'Matrix multiplications', level, gemms ? gemmBlocks(saidOnce(gemms)) : []),
      ...(trace ? contextSections(trace) : []),
    ],
  };
}

const section = (id: string, title: string, level: 1 | 2, blocks: readonly Block[]): Section[] =>
  blocks.length === 0 ? [] : [{ id, title, level, blocks }];
