import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from 'commander';
import { closest } from 'fastest-levenshtein';
import { InferscopeError } from '../model/errors.js';
import { jsonSchema, publishedDocuments } from '../model/published.js';
import { examples } from './examples.js';
import { print } from './output.js';

export function define(command: Command): void {
  command
    .argument('[document]', `one of ${Object.keys(publishedDocuments).join(', ')}`)
    .option('--write <folder>', 'write every schema into a folder instead')
    .addHelpText(
      'after',
      examples(
        ['inferscope schema profile', 'what `inferscope profile --json` prints'],
        ['inferscope schema --write schemas', 'all of them, one file each'],
      ),
    )
    .action(async (name: string | undefined, options: { write?: string }) => {
      if (options.write !== undefined) {
        await mkdir(options.write, { recursive: true });
        for (const document of Object.keys(publishedDocuments)) {
          await writeFile(join(options.write, `${document}.schema.json`), jsonSchema(document));
        }
        return;
      }
      if (name === undefined) {
        print(Object.keys(publishedDocuments).join('\n'));
        return;
      }
      if (!(name in publishedDocuments)) {
        throw new InferscopeError('E_USAGE', {
          what: `no document "${name}"`,
          why: `inferscope writes: ${Object.keys(publishedDocuments).join(', ')}.`,
          fix: `Did you mean: inferscope schema ${closest(name, Object.keys(publishedDocuments))}`,
        });
      }
      print(jsonSchema(name));
    });
}
