import process from 'node:process';
import pc from 'picocolors';

/**
 * Whether a stream gets color: NO_COLOR takes precedence, then FORCE_COLOR, then whether it is a terminal. Not picocolors' own check, which
 * colors pipes and files if the environment has `CI`, and checks stdout for stderr.
 */
function wantsColor({ isTTY }: { isTTY?: boolean }, env = process.env): boolean {
  if (env['NO_COLOR']) return false;
  const forced = env['FORCE_COLOR'];
  if (forced !== undefined && forced !== '') return forced !== '0' && forced !== 'false';
  return isTTY === true && env['TERM'] !== 'dumb';
}

/** Paints text for stdout. */
export const color = pc.createColors(wantsColor(process.stdout));

/** Paints text for stderr. */
export const stderrColor = pc.createColors(wantsColor(process.stderr));
