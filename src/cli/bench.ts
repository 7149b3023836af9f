import type { Command } from 'commander';
import { defineServe } from './bench-serve.js';

export function define(command: Command): void {
  defineServe(command.command('serve <url>'));
}
