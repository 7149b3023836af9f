/** Calls `work` for each item in order, at most `lanes` at a time. @throws the first failure, after running items have ended */
export async function inLanes<T>(
  items: readonly T[],
  lanes: number,
  work: (item: T, index: number) => Promise<void>,
): Promise<void> {
  const remaining = items.entries();
  let failed = false;
  const lane = async () => {
    for (const [index, item] of remaining) {
      if (failed) return;
      await work(item, index).catch((error: unknown) => {
        failed = true;
        throw error;
      });
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: lanes }, lane));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}
