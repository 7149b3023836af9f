import type { MemoryComponent } from '../../../model/documents/memory-profile.js';
import { barColors, classColors, type Theme } from '../../palette.js';

/** One colour a component in every chart and table of memory, of the colour-blind safe set of the operator classes. */
const colors: Partial<Record<MemoryComponent['component'], string>> = {
  model_weights: classColors.gemm,
  kv_cache: classColors.attention,
  activations: classColors.norm,
  framework_overhead: classColors.copy,
  cuda_graphs: classColors.graph,
  cuda_context: classColors.quantization,
  other_processes: classColors.sampling,
  residual: classColors.elementwise,
};

/** What is reserved and not in use is as grey as idle time. */
export const componentColor = (component: string, theme: Theme): string =>
  colors[component as MemoryComponent['component']] ?? barColors.idle[theme.dark ? 'dark' : 'light'];
