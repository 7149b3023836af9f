/** Gives each item to `work`, so many at a time, in their order. @throws the first failure, when all that had begun have ended */
export async function inLanes<T>(
  items: readonly T[],
  lanes: number,
  work: (item: T, at: number) => Promise<void>,
): Promise<void> {
  const left = items.entries();
  const lane = async () => {
    for (const [at, item] of left) await work(item, at);
  };
  const ends = await Promise.allSettled(Array.from({ length: lanes }, lane));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}
