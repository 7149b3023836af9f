import process from 'node:process';
import type { Command } from 'commander';
import { alwaysRequired, doctorIds, judge } from '../capture/doctor/judge.js';
import { probeMachine } from '../capture/doctor/probe.js';
import { document } from '../model/document.js';
import { doctorVersion } from '../model/documents/doctor.js';
import { InferscopeError } from '../model/errors.js';
import { nearest } from '../model/nearest.js';
import { homeFolders } from '../session/home.js';
import { examples } from './examples.js';
import { doctorView } from '../views/doctor.js';
import { notify } from './output.js';
import { showView } from './show-view.js';

export function define(command: Command): void {
  command
    .option('--require <ids...>', `also fail when one of these is not ok: ${doctorIds.join(', ')}`)
    .option('--json', 'print one inferscope/doctor document')
    .addHelpText(
      'after',
      `\nExit code 0 when every required row is ok, else 1. Always required:\n${alwaysRequired.join(', ')}; --require names more.\n` +
        examples(
          ['inferscope doctor', 'check this machine'],
          [
            'inferscope doctor --require gpu,nsys,ncu_counters --json',
            'require GPU, nsys and counters, in CI',
          ],
        ),
    )
    .action(async (options: { require?: string[]; json?: boolean }) => {
      const required = requiredIds(options.require ?? []);
      if (process.stderr.isTTY && !options.json) notify('checking this machine …');
      const data = judge(await probeMachine(homeFolders().root), required);
      await showView(doctorView(document('doctor', doctorVersion, data)), {
        format: options.json ? 'json' : 'text',
      });
      process.exitCode = data.ok ? 0 : 1;
    });
}

/** Accepts `gpu,nsys` and `gpu nsys`. */
function requiredIds(words: string[]): string[] {
  const ids = words.flatMap((word) => word.split(',')).filter(Boolean);
  for (const id of ids) {
    if (doctorIds.includes(id)) continue;
    const near = nearest(id, doctorIds);
    throw new InferscopeError('E_USAGE', {
      what: `doctor has no row "${id}"`,
      why: `Rows: ${doctorIds.join(', ')}.`,
      fix: near === null ? 'Choose from the rows above.' : `Type: inferscope doctor --require ${near}`,
    });
  }
  return ids;
}
