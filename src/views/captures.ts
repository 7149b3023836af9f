import type { CaptureKind, CapturesResult, DocumentOf } from '../model/documents/by-kind.js';
import type { Document } from '../model/document.js';
import type { Block, View } from './block.js';
import { collectiveBlocks } from './collectives.js';
import { counterBlocks } from './counters.js';
import { gemmBlocks } from './gemms.js';
import { utilizationBlocks } from './utilization.js';
import { contextSections, traceLead, workSections } from './trace.js';

/** Sections of the captures other than the timeline. */
const sections: {
  [K in Exclude<CaptureKind, 'trace'>]: { title: string; blocks: (document: DocumentOf[K]) => Block[] };
} = {
  utilization: { title: 'Stages', blocks: utilizationBlocks },
  counters: { title: 'Nsight Compute', blocks: counterBlocks },
  gemms: { title: 'GEMMs by shape', blocks: gemmBlocks },
  collectives: { title: 'Collectives', blocks: collectiveBlocks },
};

/** Captures from other tools: a timeline, kernels of Nsight Compute, GEMMs, collectives; at least one of them. */
export function capturesView({
  session,
  trace = null,
  ...captureDocuments
}: Partial<CapturesResult> & Pick<CapturesResult, 'session'>): View {
  const documents = Object.entries(captureDocuments).filter(
    (entry): entry is [keyof typeof sections, Document<never>] => Boolean(entry[1]),
  );
  const document = trace ?? documents[0]?.[1];
  if (!document) throw new Error(`session ${session.id} has no captures`);
  // Issues of the session are in each of its documents, so only the first shows them.
  const withoutRepeatedIssues = (captured: Document<never>): Document<never> => ({
    ...captured,
    issues: captured.issues.filter(
      ({ code, text }) => !trace?.issues.some((known) => known.code === code && known.text === text),
    ),
  });
  return {
    command: session.kind,
    title: session.title,
    document,
    session,
    lead: trace ? [{ type: 'issues', issues: trace.issues }, ...traceLead(trace)] : [],
    sections: [
      ...(trace ? workSections(trace) : []),
      ...documents
        .map(([id, content]) => ({
          id,
          title: sections[id].title,
          // Details if there is a timeline.
          level: trace ? (2 as const) : (1 as const),
          blocks: sections[id].blocks(withoutRepeatedIssues(content)),
        }))
        .filter(({ blocks }) => blocks.length > 0),
      ...(trace ? contextSections(trace) : []),
    ],
  };
}
