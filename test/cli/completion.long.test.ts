import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import process from 'node:process';
import { beforeAll, describe, expect, test } from 'vitest';
import { cli, inferscope, createSetup, tinyProfileArgs, environmentOf } from './run-cli.js';

const setup = createSetup();
const bin = join(setup.scratch, 'bin');
const script = join(setup.scratch, 'inferscope.bash');
const ids: string[] = [];

beforeAll(() => {
  // The script calls `inferscope` from PATH, as in a user's shell.
  mkdirSync(bin);
  const path = join(bin, 'inferscope');
  writeFileSync(path, `#!/bin/sh\nexec '${process.execPath}' '${cli}' "$@"\n`);
  chmodSync(path, 0o755);
  writeFileSync(script, inferscope(setup, ['completion', 'bash']).stdout);
  for (const name of ['llm-b1', 'costs-$(touch${IFS}pwned)']) {
    const result = inferscope(setup, tinyProfileArgs(setup, '--name', name));
    expect(result.status, result.stderr).toBe(0);
  }
  const { data } = JSON.parse(inferscope(setup, ['session', 'list', '--json']).stdout) as {
    data: { sessions: { id: string }[] };
  };
  ids.push(...data.sessions.map(({ id }) => id));
});

/**
 * Completions that bash offers at the end of a line. Readline also breaks words at = : @ (COMP_WORDBREAKS), so COMP_WORDS is split there,
 * and the function must answer with the part after the break.
 */
function complete(line: string): string[] {
  const words = line.split(/\s+/).flatMap((word) => word.split(/([=:@]+)/).filter((part) => part !== ''));
  if (/\s$/.test(line) || line === '') words.push('');
  const commands = [
    `source ${quote(script)}`,
    `COMP_LINE=${quote(line)} COMP_POINT=\${#COMP_LINE}`,
    `COMP_WORDS=(${words.map(quote).join(' ')})`,
    'COMP_CWORD=$((${#COMP_WORDS[@]} - 1))',
    '_inferscope',
    'printf "%s\\n" "${COMPREPLY[@]}"',
  ].join('\n');
  const env = { ...environmentOf(setup), PATH: `${bin}${delimiter}${process.env['PATH']}` };
  const result = spawnSync('bash', ['--norc', '-u', '-c', commands], {
    encoding: 'utf8',
    cwd: setup.scratch,
    env,
  });
  expect([result.status, result.stderr]).toEqual([0, '']);
  return result.stdout.split('\n').filter((word) => word !== '');
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** The subcommands and flags in the --help of a command. */
function parseHelp(...command: string[]): { verbs: string[]; flags: string[] } {
  const { stdout } = inferscope(setup, [...command, '--help']);
  const section = (title: string) => new RegExp(`^${title}:\n((?: {2,}.*\n?)+)`, 'm').exec(stdout)?.[1] ?? '';
  const groups = [...stdout.matchAll(/^([A-Z][\w ]*):$/gm)].flatMap(([, title]) =>
    title === 'Options' || title === 'Arguments' || title === 'Examples' ? [] : [section(title!)],
  );
  const verbs = [...groups.join('\n').matchAll(/^ {2}([a-z][\w-]*)(?:\|([\w-]+))?/gm)].flatMap((match) =>
    [match[1], match[2]].filter((name) => name !== undefined && name !== 'help'),
  );
  const flags = [...section('Options').matchAll(/^ {2}(-\w)?(?:, )?(--[\w-]+)?/gm)].flatMap((match) =>
    [match[1], match[2]].filter((flag) => flag !== undefined),
  );
  return { verbs: verbs as string[], flags: flags as string[] };
}

describe('bash', () => {
  test('completes the commands and subcommands of --help', () => {
    const { verbs } = parseHelp();
    expect(verbs).toContain('profile');
    expect(complete('inferscope ').toSorted()).toEqual(verbs.toSorted());
    expect(complete('inferscope se').toSorted()).toEqual(['serve', 'session', 'setup']);
    expect(complete('inferscope session ').toSorted()).toEqual(parseHelp('session').verbs.toSorted());
    expect(complete('inferscope session ex')).toEqual(['export']);
  });

  test.each([[], ['profile'], ['run'], ['sql'], ['export'], ['session', 'ls'], ['bench', 'serve']])(
    'offers the flags of --help: %s %s',
    (...command) => {
      const { flags } = parseHelp(...command);
      expect(flags.length).toBeGreaterThan(1);
      const offered = complete(`inferscope ${[...command, '-'].join(' ')}`);
      expect(offered.toSorted()).toEqual(flags.toSorted());
    },
  );

  test('completes values: choices, words of special parsers, lists with commas, --option=value', () => {
    const formats = ['chrome-trace', 'csv', 'openmetrics', 'parquet', 'perfetto', 'speedscope'];
    expect(complete('inferscope export --format ').toSorted()).toEqual(formats);
    // Readline breaks words at =, so completions are the part after it.
    expect(complete('inferscope export --format=s')).toEqual(['speedscope']);
    expect(complete('inferscope run --ncu-set ro')).toEqual(['roofline']);
    expect(complete('inferscope run --evaluator nsys,t')).toEqual(['nsys,torch']);
    expect(complete('inferscope completion z')).toEqual(['zsh']);
    const baselines = ['baseline', 'baseline-check', 'baseline-metrics'];
    expect(complete('inferscope schema base').toSorted()).toEqual(baselines);
    expect(complete('inferscope profile --seed ')).toEqual([]);
    expect(complete('inferscope profile --dtype float32 --output mo')).toEqual([]);
  });

  test('completes sessions by @last, name and id; a name is never run as a command', () => {
    expect(complete('inferscope session show ll')).toEqual(['llm-b1']);
    expect(complete('inferscope session show 2').toSorted()).toEqual(ids.toSorted());
    expect(complete('inferscope sql -s ll')).toEqual(['llm-b1']);
    // Readline also breaks words at @.
    expect(complete('inferscope report --session @l')).toEqual(['last']);
    expect(complete('inferscope session delete llm-b1 costs')).toEqual([
      String.raw`costs-\$\(touch\$\{IFS\}pwned\)`,
    ]);
    expect(complete('inferscope session rename llm-b1 ')).toEqual([]);
  });

  test('completes files, and after run -- the program and its files', () => {
    symlinkSync(setup.tiny, join(setup.scratch, 'tiny-config.json'));
    expect(complete('inferscope import tiny-')).toEqual(['tiny-config.json']);
    expect(complete('inferscope run --evaluator none -- bas')).toContain('bash');
    expect(complete('inferscope run -- python3 tiny-')).toContain('tiny-config.json');
    // The program's options are not inferscope's.
    expect(complete('inferscope run -- python3 --ev')).toEqual([]);
  });
});

test('prints a script for each shell, and rejects other words', () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { status, stdout, stderr } = inferscope(setup, ['completion', shell]);
    expect([status, stderr]).toEqual([0, '']);
    for (const word of ['session compare', 'bench serve', 'speedscope'])
      expect(stdout.includes(word), `${shell}: ${word}`).toBe(true);
  }
  const result = inferscope(setup, ['completion']);
  expect([result.status, result.stderr]).toEqual([2, expect.stringContaining('bash, zsh, fish')]);
  const unknownShell = inferscope(setup, ['completion', 'tcsh']);
  expect([unknownShell.status, unknownShell.stderr]).toEqual([2, expect.stringContaining('(E_USAGE)')]);
});

test('the list of sessions for completion has the last one first', () => {
  const { stdout } = inferscope(setup, ['completion', '--sessions']);
  expect(stdout.split('\n')[0]).toBe(`@last\t${ids.at(-1)}`);
});
