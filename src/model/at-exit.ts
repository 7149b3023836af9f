import process from 'node:process';

const waiting = new Set<() => void>();

// One listener for all: Node warns of a leak at eleven on one event.
process.once('exit', () => {
  for (const action of waiting) {
    try {
      action();
    } catch {
      // The others still have to be done; what a folder leaves behind the next run removes.
    }
  }
});

/** Runs `action`, which must be synchronous, when this process exits. @returns what takes it back */
export function atExit(action: () => void): () => void {
  const listener = () => action();
  waiting.add(listener);
  return () => void waiting.delete(listener);
}
