import type { Baseline } from '../../model/documents/baseline.js';
import type { BenchPlan } from '../../model/documents/bench.js';
import { InferscopeError } from '../../model/errors.js';
import { hasSubject } from '../../model/subjects.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { readBenchPlan } from '../../facts/bench/plan.js';
import type { MetricPart } from './metric-parts.js';
import { type IterationRow, timeParts } from './row-parts.js';

type Variant = BenchPlan['variants'][number];

/**
 * Engine configurations of an inferscope benchmark; null for other sessions.
 * @throws E_USAGE if none has this label
 */
export async function variantsOf(session: Session, label: string | null): Promise<Variant[] | null> {
  if (!hasSubject(session.manifest, 'bench') && label === null) return null;
  const { variants } = await readBenchPlan(session);
  if (label === null) return variants;
  const labeled = variants.filter((variant) => variant.label === label);
  if (labeled.length > 0) return labeled;
  throw new InferscopeError('E_USAGE', {
    what: `session ${session.id} has no variant "${label}"`,
    why: `It measured ${variants.map((variant) => variant.label).join(', ')}.`,
    fix: `Type for example: inferscope bench compare @last~1 ${session.id}:${variants[0]!.label}`,
  });
}

/**
 * TTFT, TPOT, end-to-end latency and output tokens/s per point. A launch is one process of the engine. Variants have
 * their label only if there are several, so that two sessions with one configuration each compare.
 */
export async function benchParts(
  database: SessionDatabase,
  variants: readonly Variant[],
): Promise<MetricPart[]> {
  const rows = await database.query<IterationRow & { execution_id: string; point: string }>(
    `SELECT execution_id, point, concat_ws(' ', execution_id, launch) AS launch, batch_size, input_len, output_len, ttft_ns, tpot_ns,
            end_ns - start_ns AS e2e_ns
     FROM iterations WHERE point IS NOT NULL AND NOT coalesce(warmup, false) AND end_ns > start_ns
     ORDER BY execution_id, launch, iteration`,
  );
  return variants.flatMap(({ execution_id, label, points }) =>
    points.flatMap(({ point }) =>
      timeParts(
        variants.length > 1 ? `${label} · ${point}` : point,
        rows.filter((row) => row.execution_id === execution_id && row.point === point),
      ),
    ),
  );
}

/** `engine argument mode: eager`, of the one compared variant, or of all with their labels. */
export async function engineArgsOf(
  sessions: readonly Session[],
  label: string | null,
): Promise<Baseline['identity']> {
  const facts = new Map<string, Set<string>>();
  for (const session of sessions) {
    const variants = (await variantsOf(session, label)) ?? [];
    const names = new Set(variants.flatMap(({ engine_args }) => Object.keys(engine_args)));
    for (const name of names) {
      const values = variants.map(({ engine_args }) => engine_args[name] ?? 'default');
      const factValues = facts.get(name) ?? new Set();
      facts.set(name, factValues.add([...new Set(values)].join(' | ')));
    }
  }
  return [...facts].map(([name, values]) => ({
    label: `engine argument ${name}`,
    part: 'engine',
    value: [...values].join(' | '),
  }));
}
