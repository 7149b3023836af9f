import type { Command } from 'commander';
import { defineCompare } from './memory-compare.js';
import { memoryOptions, type MemoryTyped } from './memory-options.js';

export function define(command: Command): void {
  defineCompare(command);
  memoryOptions(command).action(async (typed: MemoryTyped) => {
    const { memoryCommand } = await import('./memory-command.js');
    await memoryCommand(typed);
  });
}
