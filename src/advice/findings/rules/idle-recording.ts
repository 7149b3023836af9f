import { doubt } from '../doubt.js';
import { idlePeriodsSql } from '../queries/monitor-queries.js';
import type { Rule } from '../rule.js';
import { monitorOf } from '../session-analyses.js';
import { formatPercent } from '../../../vocabulary/format.js';
import { scopeLabel } from '../../../vocabulary/sampled-metrics.js';

/** Share of the recorded time. */
const minShare = 0.2;

/** A machine recording with a GPU that is idle for long, by the driver's utilization. */
export const idleRecording: Rule = {
  id: 'idle_recording',
  title: 'GPU idle in a recording',
  docs: {
    finds: 'The GPU was idle for a large part of a recording.',
    needs: '`inferscope monitor --record`, or nvidia-smi recordings',
    gain: 'None: utilization does not show causes.',
    change: 'Record a timeline of the program while the GPU is idle.',
    withheld: 'idle for less than 20 % of the time, or the session has a timeline',
  },
  references: [],
  async find(context) {
    if (context.has('kernels'))
      return { outcome: 'not_applicable', why: 'A timeline of kernels shows idle time exactly.' };
    if (context.manifest.kind !== 'monitor' && context.manifest.kind !== 'import')
      return { outcome: 'not_applicable', why: 'The session is not a machine recording.' };
    const monitor = await monitorOf(context);
    const devices = (monitor?.devices ?? []).filter(({ idle }) => idle.share.value !== null);
    if (!monitor || devices.length === 0)
      return { outcome: 'not_applicable', why: 'No GPU utilization was recorded.' };
    const idle = devices.filter((device) => device.idle.share.value! >= minShare);
    if (idle.length === 0)
      return { outcome: 'not_fired', why: devices.map(({ headline }) => headline).join(' ') };
    const { evidence } = await context.evidence(
      idlePeriodsSql(
        idle.map(({ scope }) => scope),
        monitor.thresholds.idle_percent,
      ),
      () => idle.map(({ headline }) => headline).join(' '),
    );
    return {
      outcome: 'fired',
      findings: [
        doubt({
          title: `Idle GPU: ${scopeLabel(idle[0]!.scope)} was idle for ${formatPercent(idle[0]!.idle.share.value!)} of the recording`,
          cause:
            'The GPU waits for load, the host or data between requests, stages or programs. A timeline shows which; the recording does not.',
          change: {
            kind: 'capture',
            text: 'Record a timeline of the program while it is idle.',
            example: 'inferscope run --evaluator nsys -- <command>',
          },
          confidence: 'medium',
          evidence: [evidence],
          check: 'inferscope monitor --while -- <command>',
        }),
      ],
    };
  },
};
