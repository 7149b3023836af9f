import process from 'node:process';
import { secondsLeft } from '../capture/sweep/expected.js';
import { needsRun } from '../capture/sweep/journal.js';
import { type QueuedJobs, queueText } from '../capture/tools/slurm.js';
import type { SweepResult, SweepRun } from '../model/documents/sweep.js';
import { stderrColor } from '../render/terminal/color.js';
import { textWidth, withPlainSpaces } from '../render/terminal/text.js';
import { valueText } from '../render/value.js';
import { figureValue, seconds, shownFiguresOf } from '../views/sweep-columns.js';
import { figureLabel, runOutcomeLabels } from '../vocabulary/sweep.js';
import { notify } from './output.js';
import { startProgress } from './progress.js';
import type { SweepOptions } from './sweep-plan.js';
import { formatDuration } from '../vocabulary/format.js';

interface SweepProgress {
  onRun: (event: { type: 'start' | 'end' | 'retry'; run: SweepRun }) => void;
  /** Shows the number of queued and running jobs on Slurm. */
  onQueue: (queued: QueuedJobs | null) => void;
  end: () => void;
}

/** One line per run on stderr: what is running with the estimated time left, then its result. */
export function sweepProgress(
  sweep: SweepResult,
  { quiet = false, on }: Pick<SweepOptions, 'quiet' | 'on'>,
): SweepProgress {
  const progress = startProgress(quiet);
  let timer: NodeJS.Timeout | null = null;
  const title = (run: SweepRun) => `${run.number}/${sweep.runs.length} ${run.label}`;
  const stop = () => {
    if (timer) clearInterval(timer);
    timer = null;
  };
  const show = (run: SweepRun) => {
    const since = run.started_at === null ? 0 : (Date.now() - Date.parse(run.started_at)) / 1000;
    const timeLeft = secondsLeft(sweep.runs, needsRun, { run, seconds: since });
    const timeText = `about ${formatDuration(timeLeft)} left`;
    // Without a terminal each step prints one line.
    if (process.stderr.isTTY) progress.update(title(run), `${formatDuration(since)} · ${timeText}`);
    else progress.update(`${title(run)} · ${timeText}`);
  };
  return {
    onRun: ({ type, run }) => {
      stop();
      if (type === 'start') {
        // Slurm starts runs when it can, many at a time.
        if (on === 'slurm') return;
        show(run);
        if (process.stderr.isTTY) timer = setInterval(() => show(run), 1000).unref();
        return;
      }
      if (type === 'retry') {
        progress.end();
        if (!quiet) notify(`  ${title(run)}: ${run.failure?.what}; retrying`);
        return;
      }
      if (run.outcome === 'measured') {
        progress.done(title(run), resultText(sweep, run, textWidth(`✓ ${title(run)}  `)));
        return;
      }
      progress.end();
      // The end of the sweep states why runs could not start.
      if (!quiet)
        notify(
          `${stderrColor.red('✗')} ${title(run)}  ${runOutcomeLabels[run.outcome]}${run.failure && run.outcome !== 'not_run' ? `: ${run.failure.what}` : ''}`,
        );
    },
    onQueue: (queued) => {
      const ended = sweep.runs.filter(({ outcome }) => outcome !== 'running' && outcome !== 'pending').length;
      progress.update('runs on Slurm', `${ended} of ${sweep.runs.length} ended · ${queueText(queued)}`);
    },
    end: () => {
      stop();
      progress.end();
    },
  };
}

/** Texts of as many figures as fit on the line; the final table has all. */
function resultText(sweep: SweepResult, run: SweepRun, usedColumns: number): string {
  const words = resultWords(sweep, run);
  const duration = run.duration_s === null ? [] : [valueText(seconds(run.duration_s))];
  const text = () => withPlainSpaces([...words, ...duration].join(', '));
  while (words.length > 1 && usedColumns + textWidth(text()) > (process.stderr.columns || 80)) words.pop();
  return text();
}

const resultWords = (sweep: SweepResult, run: SweepRun): string[] => {
  const [figures, ...points] = run.figures;
  return points.length > 0
    ? []
    : shownFiguresOf(sweep)
        .filter((name) => typeof figures?.values[name] === 'number')
        .slice(0, 3)
        .map((name) => `${figureLabel(name)} ${valueText(figureValue(name, figures!.values[name], run))}`);
};
