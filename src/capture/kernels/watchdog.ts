/** Aborts work that does not report for too long. */
interface Watchdog {
  readonly signal: AbortSignal;
  readonly hung: boolean;
  /** Progress: the timeout restarts, `ms` from now. */
  feed(ms: number): void;
  stop(): void;
}

/** @param parent signal that ends the work for another reason than a hang */
export function startWatchdog(parent: AbortSignal, ms: number): Watchdog {
  const controller = new AbortController();
  let timer = setTimeout(onTimeout, ms);
  function onTimeout() {
    // Stopping takes time, too.
    if (!parent.aborted) controller.abort();
  }
  return {
    signal: AbortSignal.any([parent, controller.signal]),
    get hung() {
      return controller.signal.aborted;
    },
    feed(next) {
      clearTimeout(timer);
      timer = setTimeout(onTimeout, next);
    },
    stop: () => clearTimeout(timer),
  };
}
