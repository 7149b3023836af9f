import type { Workbench } from '../../model/workbench.js';

/** c10::DeviceType of the memory events: 1 is CUDA (ROCm too), 0 the CPU. */
const isGpu = 'device_type <> 0';

/** Above every External id: represents an allocation among operators. */
const allocationId = 2 ** 32;

/** The caching allocator's running totals, one row per change: `allocated` and `reserved` of the table memory. */
export async function saveAllocatorTotals(
  workbench: Workbench,
  captureId: string,
  constants: Record<string, string | number | null>,
): Promise<void> {
  const rowsSql = (kind: string, column: string) => `
    SELECT t_ns, CASE WHEN isnan(pid) THEN NULL ELSE pid END AS pid,
      CASE WHEN ${isGpu} THEN device END AS device, '${kind}' AS kind, ${column} AS bytes,
      CASE WHEN ${isGpu} THEN 'torch CUDA caching allocator' ELSE 'torch CPU allocator' END AS source
    FROM kineto_memory WHERE NOT isnan(${column}) AND (${isGpu} OR ${column} > 0)`;
  await workbench.save(
    'memory',
    captureId,
    `SELECT t_ns, pid, device::DOUBLE AS device, kind, bytes, source FROM
     (${rowsSql('allocated', 'allocated')} UNION ALL ${rowsSql('reserved', 'reserved')}) ORDER BY t_ns, kind`,
    constants,
  );
}

/**
 * Bytes allocated on devices become allocated_bytes of the innermost enclosing operator of the same thread; Python calls do not count.
 * @returns allocations outside every operator
 */
export async function attributeAllocations(workbench: Workbench): Promise<number> {
  const thread = `(pid, tid) IN (SELECT pid, tid FROM kineto_memory WHERE ${isGpu} AND bytes > 0)`;
  const events = workbench.scan(`
    SELECT start_ns AS t, dur_ns AS dur, pid, tid, op_id, 0::DOUBLE AS bytes FROM trace_ops
      WHERE op_id < ${allocationId} AND ${thread}
    UNION ALL SELECT t_ns, 0, pid, tid, ${allocationId}, bytes FROM kineto_memory WHERE ${isGpu} AND bytes > 0
    ORDER BY pid, tid, t, dur DESC, op_id`);
  const allocated = new Map<number, number>();
  let outside = 0;
  const open: { id: number; end: number }[] = [];
  let pid = Number.NaN;
  let tid = Number.NaN;
  for await (const { rows, columns } of events) {
    for (let i = 0; i < rows; i++) {
      if (columns['pid']![i] !== pid || columns['tid']![i] !== tid) {
        pid = columns['pid']![i]!;
        tid = columns['tid']![i]!;
        open.length = 0;
      }
      const timeNs = columns['t']![i]!;
      const id = columns['op_id']![i]!;
      while (open.length > 0 && open.at(-1)!.end <= timeNs) open.pop();
      if (id < allocationId) {
        open.push({ id, end: timeNs + columns['dur']![i]! });
        continue;
      }
      const innermost = open.at(-1);
      if (innermost) allocated.set(innermost.id, (allocated.get(innermost.id) ?? 0) + columns['bytes']![i]!);
      else outside++;
    }
  }
  if (allocated.size > 0) {
    const writer = await workbench.createTable('kineto_allocated', ['op_id', 'bytes']);
    writer.append(
      { op_id: Float64Array.from(allocated.keys()), bytes: Float64Array.from(allocated.values()) },
      allocated.size,
    );
    writer.close();
    await workbench.run(
      `UPDATE trace_ops SET allocated_bytes = a.bytes FROM kineto_allocated a WHERE a.op_id = trace_ops.op_id;
       DROP TABLE kineto_allocated`,
    );
  }
  return outside;
}
