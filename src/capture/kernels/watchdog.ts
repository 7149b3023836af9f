/** Ends what does not report for too long. */
export interface Watchdog {
  readonly signal: AbortSignal;
  readonly hung: boolean;
  /** It lives: the time begins again, for `ms` from now. */
  feed(ms: number): void;
  stop(): void;
}

/** @param parent what ends the work for another reason; not a hang */
export function startWatchdog(parent: AbortSignal, ms: number): Watchdog {
  const own = new AbortController();
  let timer = setTimeout(bark, ms);
  function bark() {
    // Being stopped takes its time, too.
    if (!parent.aborted) own.abort();
  }
  return {
    signal: AbortSignal.any([parent, own.signal]),
    get hung() {
      return own.signal.aborted;
    },
    feed(next) {
      clearTimeout(timer);
      timer = setTimeout(bark, next);
    },
    stop: () => clearTimeout(timer),
  };
}
