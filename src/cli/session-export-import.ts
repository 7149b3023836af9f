import type { Command } from 'commander';
import { examples } from './examples.js';
import { notify, print, warn } from './output.js';
import { type JsonOption, jsonOption, printSessionDocument, selectorHelp } from './session-command.js';

/** Adds `session export` to the command `session`. */
export function defineExport(command: Command): void {
  command
    .command('export')
    .description('export a session to one file')
    .argument('[session]', selectorHelp, '@last')
    .option('-o, --output <file>', 'file to write (default: <id>.inferscope.tar.gz)')
    .option('--derived', 'include reports and caches')
    .option(
      '--raw',
      "include the profilers' raw files, which may contain the program's environment variables",
    )
    .option('--overwrite', 'replace an existing file')
    .option(...jsonOption)
    .addHelpText(
      'after',
      examples(
        ['inferscope session export llm-b1', 'write to the current folder'],
        ['inferscope session export @last -o /media/stick/run.tar.gz --derived', 'include its reports'],
      ),
    )
    .action(
      async (
        selector: string,
        options: JsonOption & { output?: string; derived?: boolean; raw?: boolean; overwrite?: boolean },
      ) => {
        const { selectSession } = await import('../session/select.js');
        const { exportSession } = await import('../session/archive-export.js');
        const { formatBytes, plural } = await import('../vocabulary/format.js');
        const session = selectSession(selector);
        const { json, ...exportOptions } = options;
        const archive = await exportSession(session, exportOptions);
        const reports = archive.raw_reports;
        if (reports.length > 0 && options.raw) {
          warn(
            `${reports.join(', ')} may contain all environment variables of the profiled program, including tokens: ` +
              'check before you share the archive',
          );
        } else if (reports.length > 0) {
          notify(
            `left out: ${reports.join(', ')} (raw files of profilers may contain the program's environment; --raw includes them)`,
          );
        }
        if (json) await printSessionDocument('session-export', { id: session.id, ...archive });
        else print(`${archive.path}  (${formatBytes(archive.bytes)}, ${plural(archive.files, 'file')})`);
      },
    );
}

/** Adds `session import` to the command `session`. */
export function defineImport(command: Command): void {
  command
    .command('import')
    .description('import an exported session')
    .argument('<file>', 'file written by session export')
    .option(...jsonOption)
    .addHelpText(
      'after',
      examples(
        ['inferscope session import 20261120-221503-llama-24m.inferscope.tar.gz', 'verify and import it'],
        ['inferscope session import run.tar.gz --json', 'print JSON'],
      ),
    )
    .action(async (file: string, options: JsonOption) => {
      const { importArchive } = await import('./session-archive.js');
      const { id, outcome, droppedName } = await importArchive(file);
      if (options.json) {
        await printSessionDocument('session-import', { id, outcome, dropped_name: droppedName });
      } else {
        print(
          outcome === 'imported'
            ? `imported ${id}`
            : `${id} already exists with the same content: nothing changed`,
        );
      }
    });
}
