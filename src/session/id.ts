/** Maximum slug length in an id, so that ids are at most 40 characters and fit tables and commands in 80 columns. */
const slugLength = 24;

/** Valid session folder names; names with a leading dot are temporary folders. */
export const sessionIdPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** "Llama 24M (f32)" -> "llama-24m-f32"; "session" if no valid character is left. */
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
 * An id that sorts by time: 20261120-221503-llama-24m (UTC, seconds). `attempt` 2 and up distinguishes sessions of the same second and
 * label: …-2.
 */
export function sessionId(time: Date, label: string, attempt = 1): string {
  const stamp = time
    .toISOString()
    .replaceAll(/[-:]|\.\d+Z$/g, '')
    .replace('T', '-');
  return `${stamp}-${slugOf(label)}${attempt > 1 ? `-${attempt}` : ''}`;
}
