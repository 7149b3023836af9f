import process from 'node:process';

const exitActions = new Set<() => void>();

// One listener for all actions: Node warns of a leak at eleven listeners of one event.
process.once('exit', () => {
  for (const action of exitActions) {
    try {
      action();
    } catch {
      // The other actions must still run; the next run removes a leftover folder.
    }
  }
});

/** Runs `action`, which must be synchronous, when this process exits. @returns function that cancels it */
export function atExit(action: () => void): () => void {
  const listener = () => action();
  exitActions.add(listener);
  return () => void exitActions.delete(listener);
}
