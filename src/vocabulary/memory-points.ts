import { classColors } from './colors.js';
import { stageLabels } from './stages.js';

/** Labels of the points of a memory profile and of the increases between them; the same on every surface. */
export const pointLabels = {
  baseline: 'baseline',
  post_warmup: 'after warm-up',
  peak: 'peak',
  memory_increase: 'peak − baseline',
  warmup_increase: 'after warm-up − baseline',
  growth: 'peak − after warm-up',
} as const;

export const pointMeanings: Readonly<Record<'baseline' | 'post_warmup' | 'peak', string>> = {
  baseline: 'before the model is loaded',
  post_warmup: 'after warm-up, before the measured run',
  peak: 'maximum from the launch to the end of the run',
};

/** Colors of the points on the lines of memory. */
export const pointColors = {
  baseline: classColors.norm,
  post_warmup: classColors.attention,
  peak: classColors.sampling,
} as const;

/** Labels of the latencies of a memory profile. */
export const memoryLatencyLabels: Readonly<Record<string, string>> = {
  mean_latency: 'mean latency',
  mean_ttft: 'mean TTFT',
  mean_tpot: 'mean TPOT',
  tokens_per_second: 'output tokens/s',
};

/** Label of a stage at which the allocator was read: a point of the profile, a kind of stage, or a word of the probe. */
export const allocatorStageLabel = (stage: string): string =>
  ({ ...stageLabels, ...pointLabels } as Readonly<Record<string, string>>)[stage] ??
  stage.replaceAll('_', ' ');
