import { spawn } from 'node:child_process';
import process from 'node:process';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Reply, testServer, type TestServer } from '../../src/ask/test-server.js';
import { analyzeDocumentSchema, analyzeRequestDocumentSchema } from '../../src/model/documents/analyze.js';
import { cli, expectFailure, inferscope, createSetup, type CliResult, environmentOf } from './run-cli.js';
import { captures, fixture } from './capture-files.js';

const setup = createSetup();
let server: TestServer | null = null;
afterEach(async () => {
  await server?.close();
  server = null;
});

beforeAll(() => {
  for (const name of ['serial_streams-fixed', 'serial_streams-fault'])
    expect(inferscope(setup, ['session', 'import', fixture(`diagnosis/${name}.tgz`)]).status).toBe(0);
});

/** Runs the binary with a scripted model: asynchronously, because the model's server runs in this process and must answer. */
async function runWithModel(
  args: string[],
  script: (Reply | 'interrupt')[],
  env: NodeJS.ProcessEnv = {},
): Promise<CliResult> {
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
    env: { ...environmentOf(setup), ...settings, ...env },
  });
  const text = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk) => (text.stdout += String(chunk)));
  child.stderr.on('data', (chunk) => (text.stderr += String(chunk)));
  return new Promise((resolve) => child.once('close', (status) => resolve({ status, ...text })));
}

const sql = (query: string): Reply => ({ calls: [{ name: 'sql', arguments: JSON.stringify({ query }) }] });

describe('with a model', () => {
  test('--dry-run prints the request; SQL queries run; the answer is on stdout; --continue sends the conversation', async () => {
    const args = ['analyze', 'serial_streams-fault', '--question', 'how many kernels?'];
    const dryRun = await runWithModel([...args, '--dry-run', '--json'], [{ text: '' }]);
    expect(server!.requests).toEqual([]);
    const request = analyzeRequestDocumentSchema.parse(JSON.parse(dryRun.stdout)).data;
    expect(dryRun.stdout).not.toContain('sk-0123');
    await server!.close();

    const first = await runWithModel(args, [
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

    const second = await runWithModel(
      ['analyze', 'serial_streams-fault', '--continue', '--question', 'and now?', '--json'],
      [{ text: 'The same [q1].' }],
    );
    expect(second.status, second.stderr).toBe(0);
    const { data } = analyzeDocumentSchema.parse(JSON.parse(second.stdout));
    expect(data).toMatchObject({ answered_by: 'model', question: 'and now?', usage: { steps: 1 } });
    expect(JSON.stringify(server!.requests[0]!.body)).toContain('how many kernels?');
  });

  test('Ctrl-C exits with 130', async () => {
    const result = await runWithModel(['analyze', '--json'], ['interrupt']);
    expectFailure(result, 130, 'E_INTERRUPTED');
  });

  test('session compare --ai works; a failing model is a warning there', async () => {
    const pair = ['session', 'compare', 'serial_streams-fixed', 'serial_streams-fault', '--ai'];
    const result = await runWithModel(pair, [{ text: 'The second launches more kernels.' }]);
    expect(result.status, result.stderr).toBe(0);
    expect(result.stdout).toContain('The second launches more kernels.');
    await server!.close();
    const failed = await runWithModel(pair, [{ status: 401, message: 'who are you' }]);
    expect([failed.status, failed.stderr]).toEqual([0, expect.stringContaining('no narrative: 127.0.0.1')]);
  });
});

test('import ends with a narrative', async () => {
  const result = await runWithModel(
    ['import', captures.kineto, '--quiet'],
    [{ text: 'Mostly launches [q0].' }],
  );
  expect([result.status, result.stdout], result.stderr).toEqual([
    0,
    expect.stringContaining('Mostly launches [q0].'),
  ]);
  expect(result.stdout.indexOf('report:')).toBeLessThan(result.stdout.indexOf('Mostly launches'));
  expect(server!.requests).toHaveLength(1);
});

describe('without a model', () => {
  test('a question is answered from stored data, with the query of the answer', () => {
    const args = ['analyze', 'serial_streams-fault', '--question', 'which kernels take longest?', '--json'];
    const { data } = analyzeDocumentSchema.parse(JSON.parse(inferscope(setup, args).stdout));
    expect(data).toMatchObject({ answered_by: 'stored', model: null, usage: null });
    const query = data.queries.find(({ tool }) => tool === 'sql')!;
    const result = inferscope(setup, ['sql', '-s', 'serial_streams-fault', query.input!, '--json']);
    expect((JSON.parse(result.stdout) as { data: { rows: unknown[] } }).data.rows.length).toBe(query.rows);
  });

  test('commands that need a model name the variables to set', () => {
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
