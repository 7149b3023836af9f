import type { ExplainResult, Finding, StageWaterfall } from '../../model/documents/explain.js';
import { leadStage } from './sentences.js';
import { formatPercent } from '../../vocabulary/format.js';

/** A bar below this share of its stage is not worth a capture. */
const worthwhile = 0.1;
const shown = 4;

/** What to type next: the captures that would sharpen the largest bars, and the check of the first finding. */
export function nextSteps(
  stages: readonly StageWaterfall[],
  found: readonly Finding[],
): ExplainResult['next_steps'] {
  const lead = leadStage(stages);
  const steps: ExplainResult['next_steps'] = [];
  const add = (command: string, why: string) => {
    if (!steps.some((step) => step.command === command)) steps.push({ command, why });
  };
  const first = found.find(({ severity, hidden_by }) => severity !== 'info' && hidden_by === null);
  if (first) add(first.check, `shows whether the change worked: ${first.title}`);
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
