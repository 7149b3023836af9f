import { type GemmCalls, readGemmCalls, gemmKey } from '../facts/gemms/gemm-calls.js';
import { analyzeCounters } from '../facts/counters/counters.js';
import { analyzeGemms, readGemmRoofs } from '../facts/gemms/gemms.js';
import type { Gemm } from '../model/documents/gemms.js';
import type { Document } from '../model/document.js';
import type { CountersResult } from '../model/documents/counters.js';
import { hasRows } from '../model/subjects.js';
import type { Block } from '../views/block.js';
import { shapeLabel } from '../vocabulary/gemm-shape.js';
import { ChosenEvents } from './chosen-events.js';
import { gemmSections, kernelRoofline, noGemms, noPlace } from './gemms-page.js';
import { ncuRoofline, isSameKernel } from './ncu-roofline.js';
import { pageOfBlocks } from './blocks-page.js';
import { pagesOfSession, withDatabase } from './open-session-pages.js';
import { sessionPath } from './session-path.js';
import { once, type OpenSession } from './timeline/open-timelines.js';

const gemmLink =
  ({ key }: OpenSession, { gemms }: GemmCalls) =>
  (gemm: Gemm): string | undefined => {
    const shape = gemmKey(gemm);
    const timed = gemm.source === 'profiler' && gemms.some(({ name }) => name === shape);
    return timed ? `${sessionPath(key, '/gemms')}?${new URLSearchParams({ shape })}#chosen` : undefined;
  };

/** GEMMs, their single calls, and the roofs that they are compared with. */
const gemmsOf = (openSession: OpenSession) =>
  once(openSession, 'gemms', async () => {
    const document = await analyzeGemms(openSession.session);
    return {
      document,
      calls: await withDatabase(openSession.session, readGemmCalls),
      roofs: await readGemmRoofs(
        openSession.session,
        document.data.gemms.filter(({ source }) => source === 'profiler'),
      ),
    };
  });

/** Roofline of the GEMMs that a kernel of one execution computed. */
export async function rooflineOf(
  openSession: OpenSession,
  kernel: string,
  execution: string,
): Promise<Block[]> {
  const { document, calls, roofs } = await gemmsOf(openSession);
  const executionGemms = document.data.gemms.filter((gemm) => gemm.execution_id === execution);
  const gemmChart = kernelRoofline(
    executionGemms,
    calls.gemmsOfKernel.get(kernel) ?? [],
    roofs,
    gemmLink(openSession, calls),
  );
  const counters = await countersOf(openSession);
  const kernelCounters = (counters?.data.kernels ?? []).filter((candidate) =>
    isSameKernel(candidate, kernel),
  );
  const blocks = [...gemmChart, ...ncuRoofline(kernelCounters, () => undefined)];
  return blocks.length > 0 ? blocks : [noPlace];
}

/** Nsight Compute counters; null without an Nsight Compute capture. */
export const countersOf = (openSession: OpenSession): Promise<Document<CountersResult> | null> =>
  hasRows(openSession.session.manifest, 'counters')
    ? once(openSession, 'counters', () => analyzeCounters(openSession.session))
    : Promise.resolve(null);

/** The page of GEMMs. @param shape key of the selected GEMM; '' for none */
export async function gemmsPage(openSession: OpenSession, shape: string): Promise<string> {
  const { executions } = openSession;
  const { document, calls, roofs } = await gemmsOf(openSession);
  const { gemms: all } = document.data;
  if (all.length === 0) return pageOfBlocks(openSession, 'GEMMs', '/gemms', [noGemms]);
  const row = calls.gemms.find(({ name }) => name === shape);
  const gemm = all.find((call) => call.source === 'profiler' && gemmKey(call) === shape);
  const execution = executions.find((id) => id === gemm?.execution_id) ?? null;
  const lead = row && gemm && (
    <ChosenEvents
      session={pagesOfSession(openSession)}
      execution={execution}
      title={[shapeLabel(gemm), gemm.dtype ?? ''].join(' ')}
      row={{ ...row, class: 'gemm' }}
      eventNoun={['call', 'calls']}
    />
  );
  return pageOfBlocks(
    openSession,
    'GEMMs',
    '/gemms',
    gemmSections(document, roofs, gemmLink(openSession, calls)),
    lead,
  );
}
