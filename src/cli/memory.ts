import type { Command } from 'commander';
import { memoryOptions, type MemoryTyped } from './memory-options.js';

export function define(command: Command): void {
  memoryOptions(command).action(async (typed: MemoryTyped) => {
    const { memoryCommand } = await import('./memory-command.js');
    await memoryCommand(typed);
  });
}
