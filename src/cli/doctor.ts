import process from 'node:process';
import type { Command } from 'commander';
import { colour } from '../render/terminal/colour.js';
import { hanging, readingWidth, wrap } from '../render/terminal/text.js';
import { alwaysRequired, doctorIds, judge } from '../capture/doctor/judge.js';
import { probeMachine } from '../capture/doctor/probe.js';
import { document } from '../model/document.js';
import type { DoctorData, DoctorGroup, DoctorRow } from '../model/documents/doctor.js';
import { doctorVersion } from '../model/documents/doctor.js';
import { InferscopeError } from '../model/errors.js';
import { nearest } from '../model/nearest.js';
import { toolVersion } from '../model/version.js';
import { homeFolders } from '../session/home.js';
import { examples } from './examples.js';
import { print, printDocument, talk, terminalWidth } from './output.js';

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
      if (process.stderr.isTTY && !options.json) talk('checking this machine …');
      const data = judge(await probeMachine(homeFolders().root), required);
      if (options.json) printDocument(document('doctor', doctorVersion, data));
      else print(doctorTable(data, terminalWidth()));
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

const groupTitles: Record<DoctorGroup, string> = {
  machine: 'This machine',
  nvidia: 'NVIDIA',
  python: 'Python',
  containers: 'Containers',
  amd: 'AMD',
};

const statusWords: Record<DoctorRow['status'], { word: string; paint: (text: string) => string }> = {
  ok: { word: 'ok', paint: colour.green },
  warning: { word: 'warning', paint: colour.yellow },
  missing: { word: 'missing', paint: colour.red },
  not_applicable: { word: '-', paint: colour.dim },
};

const indent = 31;

/** Rows by group, each fix below its row. */
export function doctorTable(data: DoctorData, columns: number): string {
  const width = readingWidth(columns);
  const lines = [`inferscope ${toolVersion} · doctor`, ''];
  let group: DoctorGroup | null = null;
  for (const row of data.rows) {
    if (row.group !== group) {
      if (group) lines.push('');
      lines.push(colour.bold(groupTitles[row.group]));
      group = row.group;
    }
    const { word, paint } = statusWords[row.status];
    const failing = row.status !== 'ok' && (row.status !== 'not_applicable' || row.required);
    const mark = row.required && row.status !== 'ok' ? '!' : ' ';
    lines.push(
      ...hanging(`${mark} ${paint(word.padEnd(8))} ${row.label.padEnd(19)} `, row.found, width),
      ...(failing && row.fix ? hanging(`${' '.repeat(indent)}→ `, row.fix, width).map(colour.dim) : []),
    );
  }
  const failed = data.rows.filter((row) => row.required && row.status !== 'ok').map((row) => row.id);
  lines.push('', ...wrap(`${data.summary}.`, width));
  if (failed.length > 0) lines.push(...wrap(`Required and not ok (!): ${failed.join(', ')}.`, width));
  return lines.join('\n');
}
