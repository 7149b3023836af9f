import type { DocumentOf, AnyDocument } from '../model/documents/by-kind.js';
import type { View } from './block.js';
import type { Places } from './findings.js';

/** The view of each kind of document that is shown by itself, loaded on demand. */
const views = {
  analyze: async () => (await import('./analyze.js')).analyzeView,
  bench: async () => (await import('./bench.js')).benchView,
  captures: async () => (await import('./captures.js')).capturesView,
  estimate: async () => (await import('./estimate.js')).estimateView,
  'estimate-fits': async () => (await import('./estimate-fits.js')).estimateFitsView,
  kernels: async () => (await import('./kernels.js')).kernelsView,
  memory: async () => (await import('./memory.js')).memoryView,
  'memory-compare': async () => (await import('./memory-compare.js')).memoryCompareView,
  predict: async () => (await import('./predict.js')).predictView,
  monitor: async () => (await import('./monitor.js')).monitorView,
  profile: async () => (await import('./profile.js')).profileView,
  results: async () => (await import('./results.js')).resultsView,
  roofline: async () => (await import('./roofline.js')).rooflineView,
  serving: async () => (await import('./serving.js')).servingView,
  sweep: async () => {
    const { sweepView } = await import('./sweep.js');
    return (document) => sweepView(document);
  },
  validate: async () => (await import('./validate.js')).validateView,
  'validate-history': async () => (await import('./validate-history.js')).validateHistoryView,
} satisfies { [K in keyof DocumentOf]?: () => Promise<(document: DocumentOf[K], places?: Places) => View> };

/** The view of a document. @param places of points of its rooflines */
export async function viewOf(
  { kind, document, session }: AnyDocument<keyof typeof views>,
  places?: Places,
): Promise<View> {
  const view = (await views[kind]()) as (document: unknown, places?: Places) => View;
  return { ...view(document, places), ...(session && { session }) };
}
