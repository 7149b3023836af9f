import { gainOf } from '../gain.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import { runDelay } from '../run-delay.js';
import { type StageFacts, stageFacts } from '../stage-facts.js';
import { barsOf, checkAgain, type StageOutcome, minShare, noTimeline, outcomeOf } from '../stage-rule.js';
import { instanceWord, everyInstance, ms, part } from '../words.js';

/** Share of a stage in which the device waits for the host: below it, queued work covers most host delays. */
const minHostShare = 0.3;

/**
 * The launching thread was ready to run while another program or thread had its core. Counted by the Linux kernel
 * (/proc/<pid>/task/<tid>/schedstat) or recorded by nsys, not estimated from machine load. It lengthens a step only if the device waits for the
 * host, so other stages get no finding, and the claim is at most the host's bars.
 */
export const preemptedHost: Rule = {
  id: 'preempted_host',
  title: 'Launching thread waits for a core',
  docs: {
    finds: 'The thread that launches kernels is ready to run, and another program has its CPU core.',
    needs:
      "a GPU timeline with samples of the thread's run delay (`inferscope run` on Linux), or a report of nsys with context switches and OS calls (`inferscope run --nsys-trace osrt`)",
    gain: 'The recorded run delay, at most the time in which the GPU waits for the host.',
    change: 'Give the launching thread a core of its own: pin other work elsewhere, or start fewer threads.',
    withheld: 'less than 5 % of the stage, or the GPU waits for the host less than 30 % of it',
  },
  references: [
    {
      title: 'Linux: scheduler statistics (run delay)',
      url: 'https://docs.kernel.org/scheduler/sched-stats.html',
    },
    { title: 'taskset(1)', url: 'https://man7.org/linux/man-pages/man1/taskset.1.html' },
  ],
  questions: {
    phrases:
      'does the launching thread wait for a core | CPU contention | thread preempted, run delay | wait for CPU cores | dispatch thread descheduled | too few cores in the container | noisy neighbors on the CPU',
    needs: 'inferscope run --evaluator none,nsys -- <command>',
  },
  async find(context) {
    const stages = await stageFacts(context);
    if (stages.length === 0) return { outcome: 'not_applicable', why: noTimeline };
    const outcomes: StageOutcome[] = [];
    for (const stage of stages) {
      const result = await findPreempted(context, stage);
      if (result !== null) outcomes.push([stage.kind, result]);
    }
    return outcomeOf(
      outcomes,
      'The run delay of the launching thread was not recorded: inferscope run samples it for main threads on Linux, nsys records it for all threads with OS calls and context switches (inferscope run --nsys-trace osrt).',
    );
  },
};

/** A finding, the reason for none, or null without samples. */
async function findPreempted(
  context: FindingContext,
  stage: StageFacts,
): Promise<FoundDraft | string | null> {
  const delay = await runDelay(context, stage);
  if (delay === null) return null;
  const { kind, wall_ms: wall } = stage;
  const host = stage.host_ms + stage.launch_overhead_ms + stage.launch_latency_ms;
  const claimedMs = Math.min(delay.delay_ms, host);
  const waitText = `the launching thread waits ${ms(delay.delay_ms)} for a core, ${part(delay.delay_ms, wall)} of the time`;
  if (delay.delay_ms < minShare * wall) return waitText;
  if (host < minHostShare * wall)
    return `${waitText}, and the device waits ${part(host, wall)} for the host: queued work covers most of it`;
  const { evidence } = await context.evidence(
    delay.sql,
    () =>
      `${waitText} (${delay.tid === delay.pid ? 'main thread' : `thread ${delay.tid}`} of process ${delay.pid})`,
  );
  return {
    stage: kind,
    title: (share) => `Launching thread waits for a core, which costs ${share} of ${everyInstance(kind)}`,
    at_stake_ms: claimedMs,
    cause: `In ${instanceWord(kind)} of ${ms(wall)} the launching thread is ready to run for ${ms(delay.delay_ms)} while its core runs something else (${delay.source === 'kernel' ? 'counted by the kernel' : 'context switches of nsys'}, ${delay.instances} instances). The device waits ${ms(host)} for the host, so launches come later by that time.`,
    change: {
      kind: 'environment',
      text: 'Give the launching thread a core of its own: pin other programs and data-loading workers elsewhere (taskset, cpuset), start fewer processes or threads than cores, or raise its priority (nice).',
      example: 'taskset -c 2,3 <command>   # and other work on other cores; nice -n -5 <command> needs root',
    },
    gain: gainOf(
      wall,
      claimedMs,
      'The thread always gets a core (low: its waiting is spread evenly over the step, and only the part while the device waits for the host is saved).',
      { low_ms: (delay.delay_ms * host) / wall },
    ),
    confidence: 'medium',
    removes: 'idle',
    // Findings with time that this delay causes.
    covers: ['host_bound', 'launch_bound'],
    bars: barsOf(context, kind, ['host', 'launch_overhead', 'launch_latency']),
    evidence: [evidence],
    check: checkAgain,
  };
}
