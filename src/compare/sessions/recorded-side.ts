import { InferscopeError } from '../../model/errors.js';
import { hasSubject, type Subject } from '../../model/subjects.js';
import { subjectList } from '../../vocabulary/subjects.js';
import { yieldedTokens } from '../../facts/utilization/yielded-tokens.js';
import { readRecordedUtilization } from '../../facts/utilization/utilization.js';
import type { Session } from '../../session/open.js';
import type { Side } from './side.js';

/** The command that compares this kind of session. */
function compareWith({ manifest }: Session): string {
  const has = (...subjects: Subject[]) => subjects.some((subject) => hasSubject(manifest, subject));
  if (has('memory')) return 'Compare memory profiles with: inferscope memory compare BASE NEW';
  if (has('bench', 'load', 'results'))
    return 'Compare benchmarks and results with: inferscope bench compare BASE NEW';
  const steps = hasSubject(manifest, 'steps')
    ? ' Steps alone cannot be compared: record the program again with inferscope run --evaluator none,torch (or none,nsys on a GPU).'
    : '';
  return `Only timelines and profiles can be compared here.${steps} To look at one: inferscope report SESSION.`;
}

/** A profile stopped before its operators were recorded, reduced to its stage times for comparison. */
export async function recordedSide(session: Session): Promise<Side> {
  if (!hasSubject(session.manifest, 'profile'))
    throw new InferscopeError('E_USAGE', {
      what: `session ${session.id} has no stages, kernels or operators to compare`,
      why: `It has ${subjectList(session.manifest.subjects)}.`,
      fix: compareWith(session),
    });
  const database = await session.connect();
  try {
    const stages = await readRecordedUtilization(session, database);
    return {
      session,
      source: 'stages of the engine, no operators',
      focus: {},
      waterfalls: [],
      ranks: null,
      stages: stages.map(({ kind, steps, time_ms: time, mfu, profiled, ...sizes }) => ({
        phase: kind,
        value: {
          instances: steps,
          duration_ms: time,
          busy_ms: null,
          main_cause: null,
          kernels: null,
          launches: null,
          tokens: yieldedTokens({ kind, ...sizes }),
          mfu,
        },
        mfu_ms: time.value,
        is_clean: !profiled,
      })),
      kernels: [],
      attention_operators: null,
      gemms: [],
      clocks: [],
    };
  } finally {
    await database.close();
  }
}
