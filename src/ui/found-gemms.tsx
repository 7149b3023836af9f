import { type GemmCalls, gemmCalls, productKey } from '../facts/gemms/gemm-calls.js';
import { analyzeCounters } from '../facts/counters/counters.js';
import { analyzeGemms } from '../facts/gemms/gemms.js';
import type { Gemm } from '../model/documents/gemms.js';
import type { Document } from '../model/document.js';
import type { CountersResult } from '../model/documents/counters.js';
import { hasRows } from '../model/subjects.js';
import type { Block } from '../views/block.js';
import { shapeLabel } from '../views/gemm-rows.js';
import { ChosenEvents } from './chosen-events.js';
import { gemmSections, kernelRoofline, noGemms, noPlace } from './gemms-page.js';
import { ncuRoofline, sameKernel } from './ncu-roofline.js';
import { named, pageOfBlocks, read } from './open-session-pages.js';
import { sessionPath } from './session-path.js';
import { once, type OpenSession } from './timeline/open-timelines.js';

const gemmLink =
  ({ key }: OpenSession, { products }: GemmCalls) =>
  (gemm: Gemm): string | undefined => {
    const shape = productKey(gemm);
    const timed = gemm.source === 'profiler' && products.some(({ name }) => name === shape);
    return timed ? `${sessionPath(key, '/gemms')}?${new URLSearchParams({ shape })}#chosen` : undefined;
  };

/** Products and their single calls. */
const foundGemms = (one: OpenSession) =>
  once(one, 'gemms', async () => ({
    document: await analyzeGemms(one.session),
    calls: await read(one.session, gemmCalls),
  }));

/** Where a kernel of an execution is in the roofline. */
export async function rooflineOf(one: OpenSession, kernel: string, execution: string): Promise<Block[]> {
  const { document, calls } = await foundGemms(one);
  const own = document.data.gemms.filter((gemm) => gemm.execution_id === execution);
  const products = kernelRoofline(own, calls.ofKernel.get(kernel) ?? [], gemmLink(one, calls));
  const counters = await foundCounters(one);
  const counted = (counters?.data.kernels ?? []).filter((counted) => sameKernel(counted, kernel));
  const blocks = [...products, ...ncuRoofline(counted, () => undefined)];
  return blocks.length > 0 ? blocks : [noPlace];
}

/** What Nsight Compute counted; null where it was not used. */
export const foundCounters = (one: OpenSession): Promise<Document<CountersResult> | null> =>
  hasRows(one.session.manifest, 'counters')
    ? once(one, 'counters', () => analyzeCounters(one.session))
    : Promise.resolve(null);

/** The page of matrix products. @param shape key of the product that is chosen; '' for none */
export async function gemmsPage(one: OpenSession, shape: string): Promise<string> {
  const { executions } = one;
  const { document, calls } = await foundGemms(one);
  const { gemms: all } = document.data;
  if (all.length === 0) return pageOfBlocks(one, 'GEMMs', '/gemms', [noGemms]);
  const row = calls.products.find(({ name }) => name === shape);
  const gemm = all.find((product) => product.source === 'profiler' && productKey(product) === shape);
  const execution = executions.find((own) => own === gemm?.execution_id) ?? null;
  const lead = row && gemm && (
    <ChosenEvents
      session={named(one)}
      execution={execution}
      title={[shapeLabel(gemm), gemm.dtype ?? ''].join(' ')}
      row={{ ...row, class: 'gemm' }}
      counted={['call', 'calls']}
    />
  );
  return pageOfBlocks(one, 'GEMMs', '/gemms', gemmSections(document, gemmLink(one, calls)), lead);
}
