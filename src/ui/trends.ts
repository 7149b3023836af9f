import type { ListedProgram } from '../session/list.js';

/** The headline figures of the sessions of one workload on one GPU, earliest first. */
interface Trend {
  values: number[];
  /** Index of the session in `values`. */
  index: number;
  /** Relative change from the session before; null for the first, and after a figure of 0. */
  change: number | null;
}

/**
 * Trends of sessions; a session that is the only one of its workload has none. A workload is model, dtype, quantization, engine, GPU,
 * batch, lengths and tensor parallelism; versions of engine, driver and framework may differ, since a trend shows their effect. Without a
 * model, the command line identifies the workload, and files imported without a model have no trend.
 * @param gpuOf GPU of a program, null if unknown
 */
export function trendsOf<T extends ListedProgram>(
  programs: readonly T[],
  gpuOf: (program: NonNullable<ListedProgram['program']>) => string | null,
): Map<T, Trend> {
  const groups = new Map<string, T[]>();
  for (const program of programs) {
    const workload = program.program && workloadOf(program.program);
    if (!workload || !program.figure) continue;
    const { name, unit } = program.figure;
    const key = JSON.stringify([
      ...workload,
      gpuOf(program.program!),
      program.listed.subjects?.[0],
      name,
      unit,
    ]);
    groups.set(key, [...(groups.get(key) ?? []), program]);
  }
  const trends = new Map<T, Trend>();
  for (const group of groups.values()) {
    if (group.length < 2) continue;
    const ordered = group.toSorted((a, b) => startOf(a).localeCompare(startOf(b), 'en'));
    const values = ordered.map(({ figure }) => figure!.value);
    for (const [index, program] of ordered.entries()) {
      const previous = index === 0 ? 0 : values[index - 1]!;
      trends.set(program, { values, index, change: previous > 0 ? values[index]! / previous - 1 : null });
    }
  }
  return trends;
}

const startOf = ({ listed }: ListedProgram): string => listed.started_at ?? '';

function workloadOf({ workload, command }: NonNullable<ListedProgram['program']>): unknown[] | null {
  const { model, engine, batch_size, input_len, output_len, tensor_parallel_size } = workload ?? {};
  const shape = [batch_size, input_len, output_len, tensor_parallel_size];
  if (model) return [model.name, model.dtype, model.quantization, engine?.name, ...shape];
  return command.includes('import') ? null : [...command, ...shape];
}
