/** Translates ids of a container to ids of this machine. */
interface Numbers {
  /** Process id on this machine; null if not visible. */
  pid(inside: number): number | null;
  /** GPUs of the container by this machine's numbers; null: it has all of them. */
  gpus: readonly number[] | null;
}

/**
 * Translates lines of a container's record to this machine's ids, which the driver uses for processes and GPUs. Ids of processes that have
 * exited are remembered for their last lines. Everything else in a line is unchanged.
 */
export function recordTranslator({ pid, gpus }: Numbers): (line: string) => string {
  const hostPids = new Map<number, number>();
  const hostOf = (inside: number): number => {
    const found = hostPids.get(inside) ?? pid(inside);
    if (found !== null) hostPids.set(inside, found);
    return found ?? inside;
  };
  return (line) => {
    const hostLine = line.replace(/"pid": (\d+)/, (_, inside: string) => `"pid": ${hostOf(Number(inside))}`);
    if (gpus === null || !hostLine.includes('"type": "memory"')) return hostLine;
    return hostLine.replace(
      /"device": (\d+)/,
      (_, inside: string) => `"device": ${gpus[Number(inside)] ?? inside}`,
    );
  };
}
