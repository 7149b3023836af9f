// One timer for all streams: a timer per stream would cost more than the writes, and delay some of them together.

const slots = 4096;

/** @param nowNs the clock. `later(entry, dueNs)` calls entry.step() in the first millisecond that starts after it. */
export function wheel(nowNs) {
  const ring = Array.from({ length: slots }, () => []);
  let waiting = 0;
  let armed = false;
  let doneMs = 0;

  function tick() {
    const nowMs = Math.floor(nowNs() / 1e6);
    while (doneMs < nowMs && waiting > 0) {
      doneMs++;
      const slot = doneMs % slots;
      const due = ring[slot];
      if (due.length === 0) continue;
      ring[slot] = [];
      for (const entry of due) {
        // Due in a later turn of the wheel.
        if (entry.dueMs > nowMs) ring[slot].push(entry);
        else {
          waiting--;
          entry.step();
        }
      }
    }
    armed = waiting > 0;
    if (armed) setTimeout(tick, 1);
  }

  return {
    later(entry, dueNs) {
      if (!armed) {
        armed = true;
        doneMs = Math.floor(nowNs() / 1e6);
        setTimeout(tick, 1);
      }
      // Not in a slot that this tick has already passed.
      entry.dueMs = Math.max(Math.ceil(dueNs / 1e6), doneMs + 1);
      ring[entry.dueMs % slots].push(entry);
      waiting++;
    },
  };
}
