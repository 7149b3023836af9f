import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Reply, testServer, type TestServer } from '../../src/ask/test-server.js';
import { analyzeDocumentSchema, analyzeRequestDocumentSchema } from '../../src/model/documents/analyze.js';
import { cli, environment, expectFailure, inferscope, place, type Ran } from './profile-cli.js';

const setup = place();
let server: TestServer | null = null;
afterAll(() => rmSync(setup.scratch, { recursive: true, force: true }));
afterEach(async () => {
  await server?.close();
  server = null;
});

const fixture = (name: string) => join(process.cwd(), 'test/fixtures/diagnosis', `${name}.tgz`);
beforeAll(() => {
  for (const name of ['serial_streams-fixed', 'serial_streams-fault'])
    expect(inferscope(setup, ['session', 'import', fixture(name)]).status).toBe(0);
});

/** Runs the binary asynchronously, because the model's server runs in this process and must answer. */
async function asking(
  args: string[],
  script: (Reply | 'interrupt')[],
  env: NodeJS.ProcessEnv = {},
): Promise<Ran> {
  const interrupt = (): Reply => {
    child.kill('SIGINT');
    return { silence: true };
  };
  server = await testServer(script.map((reply) => (reply === 'interrupt' ? interrupt : reply)));
  const settings = {
    INFERSCOPE_AI_MODEL: 'scripted',
    INFERSCOPE_AI_URL: server.url,
    OPENAI_API_KEY: 'sk-0123456789abcdef0',
  };
  const child = spawn(process.execPath, [cli, ...args], {
    cwd: setup.scratch,
    env: { ...environment(setup), ...settings, ...env },
  });
  const text = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk) => (text.stdout += String(chunk)));
  child.stderr.on('data', (chunk) => (text.stderr += String(chunk)));
  return new Promise((resolve) => child.once('close', (status) => resolve({ status, ...text })));
}

const sql = (query: string): Reply => ({ calls: [{ name: 'sql', arguments: JSON.stringify({ query }) }] });

describe('with a model', () => {
  test('--dry-run prints what is sent; SQL runs; answer on stdout, messages on stderr; the conversation continues', async () => {
    const args = ['analyze', 'serial_streams-fault', '--question', 'how many kernels?'];
    const dry = await asking([...args, '--dry-run', '--json'], [{ text: '' }]);
    expect(server!.requests).toEqual([]);
    const request = analyzeRequestDocumentSchema.parse(JSON.parse(dry.stdout)).data;
    expect(dry.stdout).not.toContain('sk-0123');
    await server!.close();

    const first = await asking(args, [
      sql('SELECT count(*) AS kernels, min(host) AS host FROM kernels'),
      sql("SELECT content FROM read_text('/etc/passwd')"),
      { text: 'There are many kernels [q1], at 4711 GB/s.' },
    ]);
    expect(first.status, first.stderr).toBe(0);
    expect(first.stdout).toContain('4711 GB/s (unverified)');
    expect(first.stdout).toContain('0 of 1 numbers verified, 1 marked (unverified)');
    expect(first.stderr).toContain('asking scripted at 127.0.0.1');
    expect(first.stdout.split('\n').every((line) => line.length <= 80)).toBe(true);
    expect(server!.requests[0]!.body).toEqual(request.body);
    const sent = server!.requests.map(({ body }) => JSON.stringify(body));
    expect(sent[1]).toMatch(/host-[0-9a-f]{6}/);
    expect(sent[2]).not.toContain('root:');
    await server!.close();

    const second = await asking(
      ['analyze', 'serial_streams-fault', '--continue', '--question', 'and now?', '--json'],
      [{ text: 'The same [q1].' }],
    );
    expect(second.status, second.stderr).toBe(0);
    const { data } = analyzeDocumentSchema.parse(JSON.parse(second.stdout));
    expect(data).toMatchObject({ answered_by: 'model', question: 'and now?', usage: { steps: 1 } });
    expect(JSON.stringify(server!.requests[0]!.body)).toContain('how many kernels?');
  });

  test('Ctrl-C exits with 130', async () => {
    const ran = await asking(['analyze', '--json'], ['interrupt']);
    expectFailure(ran, 130, 'E_INTERRUPTED');
  });

  test('session compare --ai works; a failing model is a warning there', async () => {
    const pair = ['session', 'compare', 'serial_streams-fixed', 'serial_streams-fault', '--ai'];
    const ran = await asking(pair, [{ text: 'The second launches more kernels.' }]);
    expect(ran.status, ran.stderr).toBe(0);
    expect(ran.stdout).toContain('The second launches more kernels.');
    await server!.close();
    const failed = await asking(pair, [{ status: 401, message: 'who are you' }]);
    expect([failed.status, failed.stderr]).toEqual([0, expect.stringContaining('no narrative: 127.0.0.1')]);
  });
});

test('import ends with a narrative', async () => {
  const file = join(process.cwd(), 'test/fixtures/kineto-torch2.11-h200/kineto-tiny.json.gz');
  const ran = await asking(['import', file, '--quiet'], [{ text: 'Mostly launches [q0].' }]);
  expect([ran.status, ran.stdout], ran.stderr).toEqual([0, expect.stringContaining('Mostly launches [q0].')]);
  expect(ran.stdout.indexOf('report:')).toBeLessThan(ran.stdout.indexOf('Mostly launches'));
  expect(server!.requests).toHaveLength(1);
});

describe('without a model', () => {
  test('a question is answered from stored data, with the query of the answer', () => {
    const args = ['analyze', 'serial_streams-fault', '--question', 'which kernels take longest?', '--json'];
    const { data } = analyzeDocumentSchema.parse(JSON.parse(inferscope(setup, args).stdout));
    expect(data).toMatchObject({ answered_by: 'stored', model: null, usage: null });
    const query = data.queries.find(({ tool }) => tool === 'sql')!;
    const ran = inferscope(setup, ['sql', '-s', 'serial_streams-fault', query.input!, '--json']);
    expect((JSON.parse(ran.stdout) as { data: { rows: unknown[] } }).data.rows.length).toBe(query.rows);
  });

  test('commands that need a model say what to set', () => {
    const compared = inferscope(setup, [
      'session',
      'compare',
      'serial_streams-fixed',
      'serial_streams-fault',
      '--ai',
      '--json',
    ]);
    // The comparison is printed without the missing model.
    expect([compared.status, compared.stderr]).toEqual([0, expect.stringContaining('INFERSCOPE_AI_MODEL')]);
    expect((JSON.parse(compared.stdout) as { schema: string }).schema).toContain('inferscope/compare');
    expectFailure(inferscope(setup, ['analyze', '--dry-run', '--json']), 2, 'E_USAGE');
    const env = { INFERSCOPE_AI_MODEL: 'm', OPENAI_API_KEY: '' };
    expectFailure(inferscope(setup, ['analyze', '--json'], env), 4, 'E_MODEL_ACCESS');
  });
});
