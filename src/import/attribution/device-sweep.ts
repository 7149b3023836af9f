/**
 * Exclusive time and idle intervals of one device (the waterfall's "Splitting W on the device's timeline"): at each
 * instant the first that holds of compute kernels, communication kernels, copies; on one stream the activity that
 * started first; streams share equally. Times are integers: shares are whole nanoseconds and sum exactly.
 */
export interface DeviceSweep {
  /** Activities in order of start. */
  add(activity: number, startNs: number, endNs: number, priority: number, stream: number): void;
  /** Ends what is still running. */
  finish(): void;
}

export interface DeviceEvents {
  /** Called once an activity has ended, in order of end. */
  ended(activity: number, durNs: number, exclusiveNs: number): void;
  /** The device was idle until `activity` began. Called before the activity is taken. */
  idle(activity: number, fromNs: number, toNs: number): void;
}

interface Running {
  activity: number;
  startNs: number;
  endNs: number;
  priority: number;
  stream: number;
  exclusiveNs: number;
}

export function deviceSweep(events: DeviceEvents): DeviceSweep {
  /** In order of start. */
  let running: Running[] = [];
  const counted: Running[] = [];
  let nowNs = Number.NEGATIVE_INFINITY;
  /** The last one that ran alone, to be used again: an object an activity is most of what a sweep lets go of. */
  let spare: Running | undefined;

  /** Gives [nowNs, toNs], in which nothing begins or ends, to those that count. */
  function share(toNs: number): void {
    const time = toNs - nowNs;
    nowNs = toNs;
    if (time <= 0) return;
    counted.length = 0;
    let best = Number.POSITIVE_INFINITY;
    for (const one of running) best = Math.min(best, one.priority);
    for (const one of running) {
      if (one.priority === best && !counted.some(({ stream }) => stream === one.stream)) counted.push(one);
    }
    const each = Math.floor(time / counted.length);
    let rest = time - each * counted.length;
    for (const one of counted) one.exclusiveNs += each + (rest-- > 0 ? 1 : 0);
  }

  /** Ends everything that ends by `untilNs`. */
  function advance(untilNs: number): void {
    const [only] = running;
    if (only && running.length === 1) {
      if (only.endNs > untilNs) return;
      // The usual case, worth a path of its own: one stream, one kernel after the other.
      only.exclusiveNs += only.endNs - nowNs;
      nowNs = only.endNs;
      running.pop();
      spare = only;
      events.ended(only.activity, only.endNs - only.startNs, only.exclusiveNs);
      return;
    }
    while (running.length > 0) {
      let nextNs = Number.POSITIVE_INFINITY;
      for (const one of running) nextNs = Math.min(nextNs, one.endNs);
      if (nextNs > untilNs) break;
      share(nextNs);
      for (const one of running)
        if (one.endNs <= nextNs) events.ended(one.activity, one.endNs - one.startNs, one.exclusiveNs);
      running = running.filter((one) => one.endNs > nextNs);
    }
  }

  return {
    add(activity, startNs, endNs, priority, stream) {
      advance(startNs);
      if (running.length > 0) share(startNs);
      else if (nowNs !== Number.NEGATIVE_INFINITY && startNs > nowNs) events.idle(activity, nowNs, startNs);
      nowNs = startNs;
      const one = spare ?? { activity, startNs, endNs, priority, stream, exclusiveNs: 0 };
      spare = undefined;
      one.activity = activity;
      one.startNs = startNs;
      one.endNs = endNs;
      one.priority = priority;
      one.stream = stream;
      one.exclusiveNs = 0;
      running.push(one);
    },
    finish() {
      advance(Number.POSITIVE_INFINITY);
    },
  };
}
