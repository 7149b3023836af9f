import type { ExplainResult, Finding, StageWaterfall } from '../../model/documents/explain.js';
import { isProfiled } from '../../model/headline-time.js';
import { shellWord } from '../../model/shell.js';
import { hasSubject } from '../../model/subjects.js';
import type { Session } from '../../session/open.js';
import { formatPercent } from '../../vocabulary/format.js';
import { instanceWord } from '../../vocabulary/stages.js';
import { belowLauncher } from '../below-launcher.js';
import { leadStage } from './sentences.js';

type Step = ExplainResult['next_steps'][number];

/** A bar below this share of its stage is not worth a capture. */
const minBarShare = 0.1;
const maxSteps = 4;

/** Facts about the session, in addition to its stages, that decide which commands to suggest. */
interface Program {
  /** Metrics of Nsight Compute, which replays kernels: it gives no times of steps. */
  hasCounters: boolean;
  session: string;
}

/** States the model of a recorded session. @param session its name, else its id */
export const setModelCommand = (session: string): string =>
  `inferscope session set ${shellWord(session)} --model <name>`;

/** States what a kernel does. @param session its name, else its id */
const setClassCommand = (session: string, kernel: string): string =>
  `inferscope session set ${shellWord(session)} --kernel-class ${shellWord(`${kernel}=<class>`)}`;

/** Whether a run without a profiler does not give the time of the stage, so that another one would not either. */
const hasUselessCleanRun = ({ clean_ms: clean }: StageWaterfall): boolean =>
  clean.value === null && ['runs_ahead', 'transfers_between_steps'].includes(clean.reason.code);

/** The steps to suggest for these stages and findings of a session. */
export const stepsOfSession = (
  { manifest, user, id }: Session,
  { stages, findings }: Pick<ExplainResult, 'stages' | 'findings'>,
): Step[] =>
  nextSteps(stages, findings, {
    hasCounters: hasSubject(manifest, 'counters'),
    session: user.name ?? id,
  }).map((step) => ({ ...step, command: belowLauncher(step.command, manifest) }));

/**
 * Commands to suggest next: the check of the first finding, a run without a profiler if only a profiled time is known, and
 * captures that refine the largest bars.
 */
export function nextSteps(
  stages: readonly StageWaterfall[],
  findings: readonly Finding[],
  { hasCounters, session }: Program,
): Step[] {
  const lead = leadStage(stages);
  const steps: Step[] = [];
  const add = (command: string, why: string) => {
    if (!steps.some((step) => step.command === command)) steps.push({ command, why });
  };
  const first = findings.find(({ severity, hidden_by }) => severity !== 'info' && hidden_by === null);
  if (first?.check.startsWith('inferscope '))
    add(first.check, 'shows whether the change of the first finding worked');
  // Only the operators of a program without a GPU make stages.
  if (stages.some(({ source }) => source === 'operators')) {
    add(
      'inferscope doctor',
      'shows whether this machine has a GPU and a torch build that can use it; the program must also move its model there',
    );
  } else if (lead && isProfiled(lead) && !hasUselessCleanRun(lead)) {
    add(
      'inferscope run --evaluator none,nsys -- <command>',
      'adds a run without a profiler: shows the profiler overhead',
    );
  } else if (!lead && hasCounters) {
    add(
      'inferscope run --evaluator none,nsys,ncu -- <command>',
      'adds the timeline and undisturbed times of the steps',
    );
  }
  for (const bar of (lead?.bars ?? []).toSorted((a, b) => b.ms - a.ms)) {
    if (bar.better_capture === null || bar.share < minBarShare) continue;
    add(
      bar.better_capture,
      `refines "${bar.label}", ${formatPercent(bar.share)} of ${instanceWord(lead!.kind)}`,
    );
  }
  for (const { ms, share, parts } of lead?.bars ?? []) {
    const unknown = parts.find(({ kernel }) => kernel !== undefined);
    if (unknown?.kernel === undefined) continue;
    steps.push({
      command: setClassCommand(session, unknown.kernel),
      why: `states what this unknown kernel does, ${formatPercent((share * unknown.ms) / ms)} of ${instanceWord(lead!.kind)}`,
      asks: true,
    });
  }
  if (lead && lead.roofline_ms.value === null && lead.roofline_ms.reason.code === 'no_model') {
    add(setModelCommand(session), 'adds the model, so that the roofline can be computed');
  }
  // A question to the user is not displaced by suggestions of captures.
  return [...steps.filter(({ asks }) => !asks).slice(0, maxSteps), ...steps.filter(({ asks }) => asks)];
}
