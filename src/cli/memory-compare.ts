import { readFileSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { Option, type Command } from 'commander';
import type { ComparedSide } from '../compare/memory/compare.js';
import { InferscopeError, messageOf } from '../model/errors.js';
import { examples } from './examples.js';
import {
  type Configuration,
  configurationOf,
  configurationOptions,
  type ConfigurationTyped,
} from './profile-configuration.js';
import { showView, type Shown } from './show-view.js';

type CompareOptions = ConfigurationTyped & Shown;

/** Adds `memory compare` to the command `memory`. */
export function defineCompare(command: Command): void {
  const compare = command
    .command('compare <base> <now>')
    .summary('two memory profiles: difference in GB and %, by component')
    .description(
      'two memory profiles, the second against the first: points, components, GPUs, latency, and what else differs; a side is a session (id, name, @last, @last~1) or the JSON file of a profile (schema 2.0)',
    )
    .addOption(
      new Option('--format <format>', 'of the output').choices(['text', 'md', 'json']).default('text'),
    )
    .option('--html <file>', 'also write it as one page')
    .option('--json', 'print one inferscope/memory-compare document');
  configurationOptions(compare)
    .addHelpText(
      'after',
      examples(
        ['inferscope memory compare @last~1 @last', 'the run before against the newest'],
        [
          'inferscope memory compare before.json after.json --format md',
          'for the description of a pull request',
        ],
      ),
    )
    .action(async (base: string, now: string, options: CompareOptions) => {
      const { ensureReportPath } = await import('./report-file.js');
      if (options.html !== undefined) await ensureReportPath(options.html);
      const configuration = await configurationOf(options);
      const sides: [ComparedSide, ComparedSide] = [
        await sideOf(base, configuration),
        await sideOf(now, configuration),
      ];
      configuration.ensureUsed();
      refuseSame(sides);
      const { viewOf } = await import('../views/registry.js');
      const { compareMemory } = await import('../compare/memory/compare.js');
      const found = compareMemory(...sides);
      await showView(await viewOf({ kind: 'memory-compare', document: found }), options, 1);
    });
}

/** What ends in .json, holds a slash or is a file here is one, everything else a session. */
async function sideOf(selector: string, configuration: Configuration): Promise<ComparedSide> {
  const { checkComparedProfile, readComparedProfile } = await import('../compare/memory/read-profile.js');
  if (/\.json$|[/\\]/.test(selector) || statSync(selector, { throwIfNoEntry: false })?.isFile()) {
    let content: string;
    try {
      content = readFileSync(selector, 'utf8');
    } catch (error) {
      throw new InferscopeError('E_RECORD_FILE', {
        what: `${selector} cannot be read`,
        why: messageOf(error),
        fix: 'Give the JSON file of a memory profile, or a session: inferscope memory compare @last~1 @last',
      });
    }
    return {
      selector,
      kind: 'file',
      label: basename(selector),
      ...readComparedProfile(content, selector, configuration.fill),
    };
  }
  const [{ openSession }, { analyzeMemory }, { memoryProfiles }] = await Promise.all([
    import('../session/open.js'),
    import('../facts/memory-profile/memory.js'),
    import('../facts/memory-profile/imported.js'),
  ]);
  const session = await openSession(selector, undefined, memoryProfiles);
  const { data } = await analyzeMemory(session);
  const label = session.user.name ?? session.id;
  return { selector, kind: 'session', label, ...checkComparedProfile(data.profile, label) };
}

function refuseSame([base, now]: readonly [ComparedSide, ComparedSide]): void {
  const id = base.profile.metadata?.['session_id'];
  const same =
    base.selector === now.selector || (typeof id === 'string' && id === now.profile.metadata?.['session_id']);
  if (!same) return;
  throw new InferscopeError('E_USAGE', {
    what: `${base.selector} and ${now.selector} are the same profile`,
    why: 'A run does not differ from itself.',
    fix: 'inferscope memory compare @last~1 @last',
  });
}
