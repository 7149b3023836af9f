import { expect, test } from 'vitest';
import {
  redactCommand,
  redactJson,
  redactText,
  secretsOfCommand,
  secretsOfEnvironment,
} from './redaction.js';

const hf = 'hf_AbCdEfGhIjKlMnOpQrStUvWx';

test.each([
  [
    ['python', 'a.py', '--token=abc'],
    ['python', 'a.py', '--token=***'],
  ],
  [
    ['python', 'a.py', '--hf-token', 'abc', '--x'],
    ['python', 'a.py', '--hf-token', '***', '--x'],
  ],
  [
    ['curl', '--api-key', 'k', 'u'],
    ['curl', '--api-key', '***', 'u'],
  ],
  [
    ['env', `HF_TOKEN=${hf}`, 'python'],
    ['env', 'HF_TOKEN=***', 'python'],
  ],
  // The value may contain spaces, so all after the sign is hidden; inside a longer text it ends at the space.
  [
    ['env', 'DB_PASSWORD=two words'],
    ['env', 'DB_PASSWORD=***'],
  ],
  [
    ['sh', '-c', 'cd /x && HF_TOKEN=secret python a.py'],
    ['sh', '-c', 'cd /x && HF_TOKEN=*** python a.py'],
  ],
  [
    ['curl', '-H', 'Authorization: Bearer abcdef'],
    ['curl', '-H', 'Authorization: Bearer ***'],
  ],
  [
    ['git', 'clone', 'https://me:pw@host/x'],
    ['git', 'clone', 'https://***@host/x'],
  ],
  [
    ['x', hf],
    ['x', '***'],
  ],
  [
    ['open', '20261201-014942-sk-20-checked-fixed', 'key-sk-0123456789abcdef0123', 'sk-20-checked-fixed-x'],
    ['open', '20261201-014942-sk-20-checked-fixed', 'key-***', '***'],
  ],
  [
    ['x', 'sk-proj-0123456789abcdef0123'],
    ['x', '***'],
  ],
  [
    ['az', 'https://h/x?se=2026&sig=aB%2Bc%3D&sp=r', 'https://s3/x?X-Amz-Date=1&X-Amz-Signature=0af3#top'],
    ['az', 'https://h/x?se=2026&sig=***&sp=r', 'https://s3/x?X-Amz-Date=1&X-Amz-Signature=***#top'],
  ],
  [
    ['env', 'STORE=DefaultEndpointsProtocol=https;AccountName=me;AccountKey=aBcD12==;EndpointSuffix=x'],
    ['env', 'STORE=DefaultEndpointsProtocol=https;AccountName=me;AccountKey=***;EndpointSuffix=x'],
  ],
  [
    ['env', 'A="B=AccountKey=aBcD12=="'],
    ['env', 'A="B=AccountKey=***"'],
  ],
  [
    ['mysql', '-phunter2X', '-parallel', '-p8080', '-p80:8080', '-p', 'x', '-profile=Fast12'],
    ['mysql', '-p***', '-parallel', '-p8080', '-p80:8080', '-p', 'x', '-profile=Fast12'],
  ],
  [
    ['x', '--password', '--verbose'],
    ['x', '--password', '--verbose'],
  ],
])('%j', (command, expected) => {
  expect(redactCommand(command)).toEqual(expected);
});

test('options of language models with "token" or "key" in their name stay', () => {
  const command = [
    'python',
    'run.py',
    '--max-tokens',
    '64',
    '--max-new-tokens=8',
    '--num-batched-tokens',
    '2048',
    '--pad-token',
    '</s>',
    '--key',
    'batch',
    '--sort-key=name',
    '--tokens',
    '5',
    '--tokenizer',
    'x',
    '--num-key-value-heads=8',
    '--dtype',
    'float16',
  ];
  expect(redactCommand(command)).toEqual(command);
});

test('values of the environment are removed from any text', () => {
  const secrets = secretsOfEnvironment({
    MY_SERVICE_TOKEN: 'correct-horse',
    DB_PASSWORD: 'battery-staple-9',
    TOKENIZERS_PARALLELISM: 'false',
    AWS_SECRET_ACCESS_KEY: 'wJalrXUtnFEMI',
    HTTPS_PROXY: 'http://user:proxypass1@proxy:80',
    SSH_AUTH_SOCK: '/tmp/ssh-agent.1',
    HOME: '/home/someone-long',
  });
  expect(secrets).toEqual(['battery-staple-9', 'correct-horse', 'wJalrXUtnFEMI', 'proxypass1']);
  expect(redactText('got correct-horse and {"a":"battery-staple-9"}', secrets)).toBe(
    'got *** and {"a":"***"}',
  );
  expect(redactText('decode:0:correct-horse', secrets)).toBe('decode:0:***');
});

test('a text without secrets is unchanged', () => {
  const text = 'aten::mm took 3 ms at https://host/path?batch=8, tokens=128 key=7 (author: x)';
  expect(redactText(text)).toBe(text);
});

test('values of secret options are hidden everywhere else too', () => {
  const argv = [
    'serve',
    '--api-key',
    'abcdefgh1',
    '--hf-token=ijklmnop2',
    'WANDB_API_KEY=qrstuvwx3',
    '--max-tokens',
    '10000000',
  ];
  argv.push('https://me:yzabcdef4@host/', '--token', '--verbose', '--password', 'short');
  expect(secretsOfCommand(argv).sort()).toEqual(['abcdefgh1', 'ijklmnop2', 'qrstuvwx3', 'yzabcdef4']);
});

test('JSON: texts under secret names are hidden; special tokens of a vocabulary and numbers stay', () => {
  const config = {
    hf_token: 'abcdefghij',
    image_token: '<image>',
    eos_token_id: 2,
    list: ['x', 'key=hf_aaaaaaaaaaaaaaaaaaaa'],
  };
  expect(redactJson(config, (text) => redactText(text))).toEqual({
    hf_token: '***',
    image_token: '<image>',
    eos_token_id: 2,
    list: ['x', 'key=***'],
  });
});
