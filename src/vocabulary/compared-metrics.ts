import { pointLabel } from './bench.js';
import { latencyLabels } from './loads.js';
import { stageLabels } from './stages.js';

const labels: Readonly<Record<string, string>> = {
  ...latencyLabels,
  output_tokens_per_s: 'output tokens/s',
};

/** A compared metric without its point: "TTFT", "TTFT p99", "decode step, profiled"; a tool's own metric keeps its name. */
export function comparedMetricLabel(name: string): string {
  const [, metric = name, statistic] = /^(.*?)(?:\.(median|p99|max))?$/.exec(name)!;
  const stem = metric.replace(/_(?:ms|bytes)$/, '');
  const [, stage = '', profiled] = /^(.*)_step(_profiled)?$/.exec(stem) ?? [];
  const stageLabel = (stageLabels as Readonly<Record<string, string>>)[stage];
  const label =
    labels[stem] ??
    (stageLabel === undefined
      ? metric.includes('.')
        ? metric
        : stem.replaceAll('_', ' ')
      : `${stageLabel}${profiled ? ', profiled' : ''}`);
  return [label, statistic ?? ''].join(' ').trim();
}

/** A metric of a comparison with its point: "batch 4, 128 in + 64 out · TPOT". */
export const comparedLabel = ({ point, name }: { point: string | null; name: string }): string =>
  [...(point === null ? [] : [pointLabel(point)]), comparedMetricLabel(name)].join(' · ');
