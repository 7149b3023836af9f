import process from 'node:process';
import { leftWords, startCountEta } from '../capture/bench/eta.js';
import { stderrColor } from '../render/terminal/color.js';
import { inert } from '../render/terminal/text.js';
import { interruptible } from './interrupt.js';
import { terminalWidth } from './output.js';

export interface Progress {
  /** Replaces the current line on a terminal; elsewhere prints a line when the step is another one. */
  update(step: string, detail?: string): void;
  /** Finishes the current step with its result. */
  done(step: string, detail?: string): void;
  /** Clears an unfinished line. */
  end(): void;
}

/** Progress on stderr: one line per step, rewritten in place on a terminal, silent with --quiet. */
export function startProgress(quiet: boolean): Progress {
  const live = process.stderr.isTTY === true;
  let lineOpen = false;
  let lastStep = '';
  const clip = (text: string) => text.slice(0, terminalWidth(process.stderr) - 1);
  const clear = () => {
    if (lineOpen) process.stderr.write('\r\u001b[K');
    lineOpen = false;
  };
  return {
    update(step, detail = '') {
      if (quiet) return;
      if (live) {
        clear();
        process.stderr.write(clip(inert(`  ${step} ${detail}`)));
        lineOpen = true;
      } else if (step !== lastStep) process.stderr.write(`  ${inert(step)} …\n`);
      lastStep = step;
    },
    done(step, detail = '') {
      if (quiet) return;
      clear();
      process.stderr.write(
        `${stderrColor.green('✓')} ${inert(step)}${detail ? `  ${stderrColor.dim(inert(detail))}` : ''}\n`,
      );
    },
    end: clear,
  };
}

/** Progress of a step with counted parts, with the estimated time left. */
export function countProgress(
  progress: Progress,
  step: string,
): (update: { done: number; total: number; label: string }) => void {
  const secondsLeft = startCountEta();
  return ({ done, total, label }) =>
    progress.update(step, `${done}/${total} ${leftWords(secondsLeft(done, total))}${label}`);
}

/** Measures with progress on stderr; Ctrl-C stops it and keeps what was measured so far. */
export async function measureWithProgress<T>(
  { quiet }: { quiet?: boolean | undefined },
  measure: (signal: AbortSignal, progress: Progress) => Promise<T>,
): Promise<T> {
  const progress = startProgress(quiet === true);
  return interruptible((signal) => measure(signal, progress)).finally(progress.end);
}
