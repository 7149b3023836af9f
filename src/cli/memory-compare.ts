import { Option, type Command } from 'commander';
import { examples } from './examples.js';
import {
  readConfiguration,
  defineConfigurationOptions,
  type ConfigurationOptions,
} from './profile-configuration.js';
import { showView, type ViewOptions } from './show-view.js';

type CompareOptions = ConfigurationOptions & ViewOptions;

/** Adds `memory compare` to the command `memory`. */
export function defineCompare(command: Command): void {
  const compare = command
    .command('compare <base> <new>')
    .summary('compare two memory profiles by component, in GB and %')
    .description(
      'compare two memory profiles: points, components, GPUs, latency and other differences; each side is a session (id, name, @last, @last~1) or the JSON file of a profile (schema 2.0)',
    )
    .addOption(
      new Option('--format <format>', 'output format').choices(['text', 'md', 'json']).default('text'),
    )
    .option('--html <file>', 'also write a self-contained HTML page')
    .option('--json', 'print one inferscope/memory-compare document');
  defineConfigurationOptions(compare)
    .addHelpText(
      'after',
      examples(
        ['inferscope memory compare @last~1 @last', 'compare the newest run with the one before'],
        ['inferscope memory compare before.json after.json --format md', 'write Markdown for a pull request'],
      ),
    )
    .action(async (base: string, newer: string, options: CompareOptions) => {
      const { ensureReportPath } = await import('./report-file.js');
      if (options.html !== undefined) await ensureReportPath(options.html, '--html');
      const configuration = await readConfiguration(options);
      const { comparedSide } = await import('../compare/memory/side.js');
      const sides = [
        await comparedSide(base, configuration.fill),
        await comparedSide(newer, configuration.fill),
      ] as const;
      configuration.ensureUsed();
      const { viewOf } = await import('../views/registry.js');
      const { compareMemory } = await import('../compare/memory/compare.js');
      const comparison = compareMemory(...sides);
      await showView(await viewOf({ kind: 'memory-compare', document: comparison }), options, 1);
    });
}
