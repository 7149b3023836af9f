import type { ExplainResult, Finding, StageWaterfall } from '../../model/documents/explain.js';
import { isProfiled } from '../../model/headline-time.js';
import { formatPercent } from '../../vocabulary/format.js';
import type { Framework } from '../findings/framework.js';
import { leadStage } from './sentences.js';

type Step = ExplainResult['next_steps'][number];

/** A bar below this share of its stage is not worth a capture. */
const worthwhile = 0.1;
const shown = 4;

/** What of the program decides what to type, beside its stages. */
interface Program {
  framework: Framework | null;
  /** A capture of a program that used no GPU. */
  withoutGpu: boolean;
}

/**
 * What to type next: the check of the first finding, the time without a profiler where only a profiled one is known, and the
 * captures that would sharpen the largest bars.
 */
export function nextSteps(
  stages: readonly StageWaterfall[],
  found: readonly Finding[],
  { framework, withoutGpu }: Program,
): Step[] {
  const lead = leadStage(stages);
  const steps: Step[] = [];
  const add = (command: string, why: string) => {
    if (!steps.some((step) => step.command === command)) steps.push({ command, why });
  };
  const first = found.find(({ severity, hidden_by }) => severity !== 'info' && hidden_by === null);
  if (first) add(first.check, `shows whether the change worked: ${first.title}`);
  if (withoutGpu) {
    add(
      'inferscope doctor',
      'tells whether this machine has a GPU and a torch that sees it; the program must also put its model there',
    );
  } else if (lead && isProfiled(lead)) add(...withoutProfiler(framework));
  for (const bar of (lead?.bars ?? []).toSorted((a, b) => b.ms - a.ms)) {
    if (bar.sharpen === null || bar.share < worthwhile) continue;
    add(
      bar.sharpen,
      `sharpens "${bar.label}", ${formatPercent(bar.share)} of the stage: ${bar.confidence_why}`,
    );
  }
  if (lead && lead.roofline_ms.value === null && lead.roofline_ms.reason.code === 'no_model') {
    add('inferscope session utilization --model <name>', 'names the model, so that the roofline is known');
  }
  return steps.slice(0, shown);
}

/** The stages of vLLM are ranges that only a profiler records: a clean run of the program has none. */
const withoutProfiler = (framework: Framework | null): [command: string, why: string] =>
  framework === 'vllm'
    ? [
        'inferscope bench latency --engine vllm --model <model> --batch-size <n> --input-len <n> --output-len <n>',
        'times the steps of vLLM without a profiler, which a clean run of this program does not tell: what the profiler added',
      ]
    : [
        'inferscope run --evaluator none,nsys -- <command>',
        'a run without a profiler beside it tells what the profiler added',
      ];
