/** Gives each item to `work`, so many at a time, in their order. @throws the first failure, when what had begun has ended */
export async function inLanes<T>(
  items: readonly T[],
  lanes: number,
  work: (item: T, at: number) => Promise<void>,
): Promise<void> {
  const left = items.entries();
  let failed = false;
  const lane = async () => {
    for (const [at, item] of left) {
      if (failed) return;
      await work(item, at).catch((error: unknown) => {
        failed = true;
        throw error;
      });
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: lanes }, lane));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}
