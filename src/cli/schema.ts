import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { InferscopeError } from '../model/errors.js';
import { nearest, nearestNames } from '../model/nearest.js';
import { jsonSchema, publishedNames } from '../model/published.js';
import { asStorageFailure } from '../vocabulary/storage-failure.js';
import { examples } from './examples.js';
import { print } from './output.js';
import { makeFolder } from '../model/atomic-write.js';

export function define(command: Command): void {
  command
    .argument('[document]', `one of ${publishedNames.join(', ')}`)
    .option('--write <folder>', 'write all schemas to this folder')
    .addHelpText(
      'after',
      examples(
        ['inferscope schema profile', 'schema of `inferscope profile --json`'],
        ['inferscope schema --write schemas', 'write all schemas, one file each'],
      ),
    )
    .action(async (name: string | undefined, options: { write?: string }) => {
      if (options.write !== undefined) {
        await writeAll(options.write);
        return;
      }
      if (name === undefined) {
        print(publishedNames.join('\n'));
        return;
      }
      const known = publishedNames.find((publishedName) => publishedName === name);
      if (known === undefined) {
        const suggestion = nearest(name, publishedNames);
        throw new InferscopeError('E_USAGE', {
          what: `unknown document "${name}"`,
          why:
            suggestion === null
              ? `inferscope writes ${publishedNames.length} documents: ${nearestNames(publishedNames, name)}.`
              : `Did you mean ${suggestion}?`,
          fix: suggestion === null ? 'inferscope schema lists all.' : `inferscope schema ${suggestion}`,
        });
      }
      print(jsonSchema(known));
    });
}

async function writeAll(folder: string): Promise<void> {
  try {
    makeFolder(resolve(folder));
    for (const document of publishedNames)
      await writeFile(join(folder, `${document}.schema.json`), jsonSchema(document));
  } catch (error) {
    throw asStorageFailure(error, { path: resolve(folder), doing: 'write the schemas' });
  }
}
