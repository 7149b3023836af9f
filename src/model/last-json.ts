/** The last line of what a script printed, as JSON: Python packages may print lines of their own. Null if it is not JSON. */
export function lastJson(stdout: string): unknown {
  try {
    return JSON.parse(stdout.trim().split('\n').at(-1)!);
  } catch {
    return null;
  }
}
