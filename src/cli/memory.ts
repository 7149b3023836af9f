import type { Command } from 'commander';
import { defineCompare } from './memory-compare.js';
import { defineMemoryOptions, type MemoryOptions } from './memory-options.js';

export function define(command: Command): void {
  defineCompare(command);
  defineMemoryOptions(command).action(async (options: MemoryOptions) => {
    const { memoryCommand } = await import('./memory-command.js');
    await memoryCommand(options);
  });
}
