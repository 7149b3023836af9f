/** Priority: at each instant the first running class in this list counts. */
export const priorities = { compute: 0, communication: 1, copy: 2 } as const;

/**
 * Exclusive time and idle intervals of one device (docs/concepts/waterfall.md). At each instant the time goes to compute kernels, else
 * communication kernels, else copies; within a stream to the activity that started first; streams share equally. Times are integers: shares
 * are whole nanoseconds and sum exactly.
 */
export interface DeviceSweep {
  /** Activities in order of start. */
  add(activity: number, startNs: number, endNs: number, priority: number, stream: number): void;
  /** Ends all running activities. */
  finish(): void;
}

interface DeviceEvents {
  /** Called when an activity has ended, in order of end. */
  ended(activity: number, durNs: number, exclusiveNs: number): void;
  /** The device was idle until `activity` started. Called before the activity is added. */
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
  const running: Running[] = [];
  const sharing: Running[] = [];
  /** Ended entries for reuse: allocating one object per activity would dominate garbage collection. */
  const spare: Running[] = [];
  let nowNs = Number.NEGATIVE_INFINITY;

  /** Assigns [nowNs, toNs], in which nothing starts or ends, to the activities that count. */
  function share(toNs: number): void {
    const durationNs = toNs - nowNs;
    nowNs = toNs;
    if (durationNs <= 0) return;
    if (running.length === 1) {
      running[0]!.exclusiveNs += durationNs;
      return;
    }
    let highestPriority = Number.POSITIVE_INFINITY;
    for (const activity of running)
      if (activity.priority < highestPriority) highestPriority = activity.priority;
    sharing.length = 0;
    for (const activity of running)
      if (activity.priority === highestPriority && !hasStream(activity.stream)) sharing.push(activity);
    const eachNs = Math.floor(durationNs / sharing.length);
    let remainderNs = durationNs - eachNs * sharing.length;
    // The first ones get the remaining nanoseconds.
    for (const activity of sharing) activity.exclusiveNs += eachNs + (remainderNs-- > 0 ? 1 : 0);
  }

  function hasStream(stream: number): boolean {
    for (const activity of sharing) if (activity.stream === stream) return true;
    return false;
  }

  /** Ends everything that ends by `untilNs`. */
  function advance(untilNs: number): void {
    while (running.length > 0) {
      let nextNs = Number.POSITIVE_INFINITY;
      for (const activity of running) if (activity.endNs < nextNs) nextNs = activity.endNs;
      if (nextNs > untilNs) break;
      share(nextNs);
      let remaining = 0;
      for (const activity of running) {
        if (activity.endNs <= nextNs) {
          events.ended(activity.activity, activity.endNs - activity.startNs, activity.exclusiveNs);
          spare.push(activity);
        } else {
          running[remaining++] = activity;
        }
      }
      running.length = remaining;
    }
  }

  return {
    add(activity, startNs, endNs, priority, stream) {
      advance(startNs);
      if (running.length > 0) share(startNs);
      else if (nowNs !== Number.NEGATIVE_INFINITY && startNs > nowNs) events.idle(activity, nowNs, startNs);
      nowNs = startNs;
      const reused = spare.pop();
      if (!reused) {
        running.push({ activity, startNs, endNs, priority, stream, exclusiveNs: 0 });
        return;
      }
      reused.activity = activity;
      reused.startNs = startNs;
      reused.endNs = endNs;
      reused.priority = priority;
      reused.stream = stream;
      reused.exclusiveNs = 0;
      running.push(reused);
    },
    finish() {
      advance(Number.POSITIVE_INFINITY);
    },
  };
}
