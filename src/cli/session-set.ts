import type { Command } from 'commander';
import { InferscopeError } from '../model/errors.js';
import { userVersion } from '../model/manifest.js';
import { readUser } from '../session/user-file.js';
import { type ContextOptions, defineContextOptions, saveContext, readContext } from './context-options.js';
import { examples } from './examples.js';
import { print, printDocument } from './output.js';
import { selectorHelp } from './session-command.js';

/** Adds `session set` to the command `session`. */
export function defineSet(command: Command): void {
  const set = command
    .command('set')
    .description('state what a session did not record, or recorded wrongly; saved with it for later analyses')
    .argument('<session>', selectorHelp);
  defineContextOptions(set)
    .option('--clear', 'remove what was set before')
    .option('--json', 'print one inferscope/session-user document')
    .addHelpText(
      'after',
      examples(
        ['inferscope session set @last --model llama-3.1-8b --batch-size 8', 'the capture records neither'],
        ['inferscope session set b1 --kernel-class my_kernel=attention', 'a kernel that no rule knows'],
      ),
    )
    .action(async (selector: string, options: ContextOptions & { clear?: boolean; json?: boolean }) => {
      if (!(await saveContext(selector, await readContext(options), options.clear))) throw nothingToSet();
      const [{ openSession }, { document }] = await Promise.all([
        import('../session/open.js'),
        import('../model/document.js'),
      ]);
      const { id, folder } = await openSession(selector);
      const { user } = readUser(folder);
      if (options.json) printDocument(document('session-user', userVersion, { id, user }));
      else print(`${id}: ${contextWords(user.context)}`);
    });
}

/** "model llama-3.1-8b, batch size 8". */
function contextWords(context: ReturnType<typeof readUser>['user']['context'] = {}): string {
  const {
    model,
    dtype,
    batch_size: batch,
    input_len: input,
    roofline,
    kernel_classes: classes = {},
  } = context;
  const parts = [
    ...(model ? [`model ${model.name}`] : []),
    ...(dtype === undefined ? [] : [`dtype ${dtype}`]),
    ...(batch === undefined ? [] : [`batch size ${batch}`]),
    ...(input === undefined ? [] : [`${input} prompt tokens`]),
    ...Object.entries(classes).map(([kernel, name]) => `${kernel} is ${name}`),
    ...(roofline ? [`peaks of ${roofline.gpus[0]?.name ?? 'a GPU'}`] : []),
  ];
  return parts.length > 0 ? parts.join(', ') : 'nothing set';
}

function nothingToSet(): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: 'nothing to set',
    why: 'State what ran: --model, --dtype, --batch-size, --input-len, --roofline, --kernel-class, or --clear.',
    fix: 'For example: inferscope session set @last --model llama-3.1-8b --batch-size 8',
  });
}
