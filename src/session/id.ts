/** Longest slug in an id: ids stay readable in 80 columns and far below the 255 bytes of a file name. */
const slugLength = 40;

/** What a session folder may be called; leading dots are ours (temporary folders). */
export const sessionIdPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** "Llama 24M (f32)" -> "llama-24m-f32"; "session" when nothing readable is left. */
export function slugOf(label: string): string {
  const slug = label
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9.]+/g, '-')
    .slice(0, slugLength)
    .replaceAll(/^[-.]+|[-.]+$/g, '');
  return slug || 'session';
}

/**
 * Ids sort by time and read well: 20261120-221503-llama-24m (UTC, seconds).
 * `attempt` 2 and up distinguishes sessions of the same second and label: …-2.
 */
export function sessionId(at: Date, label: string, attempt = 1): string {
  const stamp = at
    .toISOString()
    .replaceAll(/[-:]|\.\d+Z$/g, '')
    .replace('T', '-');
  return `${stamp}-${slugOf(label)}${attempt > 1 ? `-${attempt}` : ''}`;
}
