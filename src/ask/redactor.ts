import { hostname, userInfo } from 'node:os';
import { redactText, secretsOfEnvironment } from '../model/redaction.js';
import type { Session } from '../session/open.js';
import type { AllowedData } from './allowable.js';
import { wholeWords } from './whole-words.js';

/** Names of the machine and program that made a session. */
export interface Surroundings {
  hosts: readonly string[];
  users: readonly string[];
  /** First parts of operator names that look like paths: "layers.3" of /layers.3/attn/qkv. */
  operatorRoots: ReadonlySet<string>;
  /** Long values of this machine's environment variables. */
  values: readonly string[];
  secrets: readonly string[];
}

export interface Redactor {
  text(text: string): string;
  /** Redacts every text of a JSON value, keys included; numbers stay. */
  json<T>(value: T): T;
}

/** First parts of absolute paths that are common on machines that run models. */
const folders = new Set(
  'app bin boot checkpoints cluster code content data datasets dbfs dev efs etc export fsx gpfs home homes kaggle lib lib32 lib64 lustre media mnt models net nfs nix opt private proc project projects repo run sbin scratch shared snap srv storage sw sys tmp user users usr var volume volumes vol work workdir workspace workspaces root hpc'.split(
    ' ',
  ),
);
const fileEnding =
  /\.(?:py|pyc|ipynb|so(?:\.\d+)*|json|jsonl|ya?ml|toml|txt|log|csv|sh|cu|cuh|cc|cpp|hpp?|js|ts|rs|go|safetensors|onnx|gguf|ptx?h?|bin|nsys-rep|ncu-rep|sqlite|parquet|gz|zip|html|md)$/i;
/** Endings of source files. Of their paths the name is kept, because it shows which file to change. */
const sourceFile = /\.(?:py|cu|cuh|cc|cpp|hpp?|js|ts|rs|go|sh|so(?:\.\d+)*)$/i;
/** Not after a letter (tokens/s, W/m), a slash, a dot (./x, ../x), % or ]. */
const posixPath = /(?<![\w/.\]%])(~?)\/(?!\/)([^\s"'`<>|;,()[\]{}:=*?]+)/g;
const fileUrl = /\bfile:\/\/\S+/gi;
const windowsPath = /(?<![\w])(?:[A-Za-z]:\\|\\\\)[^\s"'`<>|;,()]+/g;
const urlHost = /\b((?:https?|wss?|grpc|tcp|ssh|ftp):\/\/)([^\s/:"'<>@]+)/gi;
const ipv4 = /(?<![\w.-])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w-]|\.\d)/g;
/** Eight groups; fewer with a gap and a digit, so that C++ namespaces (at::native) do not match; link-local and loopback addresses. */
const ipv6 =
  /(?<![\w:.])(?:(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|(?=[0-9a-f:]*\d)(?:[0-9a-f]{1,4}:){1,6}(?::[0-9a-f]{1,4}){1,6}|fe80::[0-9a-f:]+|::1)(?![\w:])/gi;
const mac = /(?<![\w:])(?:[0-9a-f]{2}:){5}[0-9a-f]{2}(?![\w:])/gi;
const domain =
  /(?<![\w.@/-])(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:local|internal|lan|corp|intranet|localdomain|cluster|com|net|org|edu|gov|cloud)(?![\w-])/gi;
const email = /\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g;
const variable = /(?<![\w$])(\$?[A-Z][A-Z0-9_]{2,})=("[^"]*"|'[^']*'|[^\s"']+)/g;

/**
 * Replaces data that may not be sent: [path], [host], [user], [address], [value]. Anything that looks like a secret is always replaced.
 * Texts that look like paths stay if they start as operators of the session do (/layers.3/…), unless that is a common folder.
 */
export function redactor(surroundings: Surroundings, allowed: ReadonlySet<AllowedData>): Redactor {
  const hosts = namePattern(surroundings.hosts);
  const users = namePattern(surroundings.users);
  const cleanText = (before: string, isVersion: boolean): string => {
    let text = redactText(before, surroundings.secrets);
    if (!allowed.has('env')) {
      for (const value of surroundings.values) text = text.replaceAll(value, '[value]');
      text = text.replace(variable, '$1=[value]');
    }
    if (!allowed.has('paths')) {
      text = text
        .replace(fileUrl, '[path]')
        .replace(windowsPath, '[path]')
        .replace(posixPath, (match, home: string, path: string) =>
          home === '~' || isFile(path, surroundings.operatorRoots) ? shortened(path) : match,
        );
    }
    if (!allowed.has('hosts')) {
      text = text.replace(email, '[user]').replace(urlHost, '$1[host]');
      if (hosts) text = text.replace(hosts, '[host]');
      text = text.replace(mac, '[address]').replace(ipv6, '[address]').replace(domain, '[host]');
      if (!isVersion) text = text.replace(ipv4, '[address]');
      if (users) text = text.replace(users, '[user]');
    }
    return text;
  };
  const walk = (value: unknown, key: string): unknown => {
    if (typeof value === 'string') return cleanText(value, /version/i.test(key));
    if (Array.isArray(value)) return value.map((item) => walk(item, key));
    if (value === null || typeof value !== 'object') return value;
    // Keys may also be names from the session.
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [cleanText(name, true), walk(item, name)]),
    );
  };
  return { text: (text) => cleanText(text, false), json: <T>(value: T) => walk(value, '') as T };
}

function isFile(path: string, operatorRoots: ReadonlySet<string>): boolean {
  const [first = ''] = path.split('/');
  if (folders.has(first.toLowerCase()) || fileEnding.test(path)) return true;
  return path.includes('/') && !operatorRoots.has(first);
}

function shortened(path: string): string {
  const name =
    path
      .replace(/[.:]+$/, '')
      .split('/')
      .at(-1) ?? '';
  return sourceFile.test(name) && path.includes('/') ? `[path]/${name}` : '[path]';
}

/** Null without names of at least three characters: shorter ones would match ordinary words. */
function namePattern(names: readonly string[]): RegExp | null {
  const longNames = [...new Set(names)]
    .filter((name) => name.length >= 3)
    .sort((a, b) => b.length - a.length);
  return longNames.length === 0 ? null : wholeWords(longNames);
}

/** Names of users and hosts that identify no person or machine. */
const genericNames = new Set([
  'root',
  'localhost',
  'user',
  'nobody',
  'host',
  'server',
  'local',
  'unknown',
  'imported',
]);

/** Hosts, users and operators of the sessions, and names and environment of this machine. */
export async function surroundingsOf(
  sessions: readonly Session[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<Surroundings> {
  const hosts = [hostname(), hostname().split('.')[0]!];
  const users: string[] = [env['USER'], env['LOGNAME'], userName()].filter((user) => user !== undefined);
  const operatorRoots = new Set<string>();
  for (const session of sessions) {
    const { manifest } = session;
    for (const [name, fact] of Object.entries({ ...manifest.hardware, ...manifest.software }))
      if (typeof fact === 'string' && /host_?name|node_?name/i.test(name)) hosts.push(fact);
    const recorded = JSON.stringify([
      manifest.command,
      manifest.executions,
      manifest.title,
      manifest.software,
    ]);
    for (const [, name] of recorded.matchAll(/\/(?:home|Users)\/([\w.-]+)/g)) users.push(name!);
    const { hosts: sessionHosts, roots } = await namesInTables(session);
    hosts.push(...sessionHosts);
    for (const root of roots) operatorRoots.add(root);
  }
  const isIdentifying = (name: string) => !genericNames.has(name.toLowerCase());
  return {
    hosts: hosts.filter(isIdentifying),
    users: users.filter(isIdentifying),
    operatorRoots,
    values: Object.entries(env)
      .filter(
        ([name]) => !/^(PATH|PWD|OLDPWD|SHLVL|_|TERM|LANG|LC_\w+|TZ|SHELL|COLORTERM|NODE_ENV)$/.test(name),
      )
      .flatMap(([, value]) => (value && value.length >= 12 && !/^[a-z]+$/i.test(value) ? [value] : []))
      .sort((a, b) => b.length - a.length),
    secrets: secretsOfEnvironment(env),
  };
}

function userName(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    // A container's user id may have no name.
    return undefined;
  }
}

/** Hosts, and the first parts of operator names. */
async function namesInTables({ manifest, connect }: Session): Promise<{ hosts: string[]; roots: string[] }> {
  const { tables } = await import('../model/tables.js');
  const filled = Object.entries(manifest.tables)
    .filter(([, files]) => files.some(({ rows }) => rows > 0))
    .map(([name]) => name);
  const withHost = filled.filter((name) => 'host' in (tables[name as keyof typeof tables]?.columns ?? {}));
  if (withHost.length === 0) return { hosts: [], roots: [] };
  const database = await connect();
  try {
    const union = withHost.map((name) => `SELECT DISTINCT host FROM "${name}"`).join(' UNION ');
    const hostRows = await database.query<{ host: string | null }>(union);
    const rootRows = filled.includes('ops')
      ? await database.query<{ root: string }>(
          `SELECT DISTINCT split_part(name, '/', 2) AS root FROM ops WHERE starts_with(name, '/') LIMIT 1000`,
        )
      : [];
    return {
      hosts: hostRows.flatMap(({ host }) => (host === null ? [] : [host])),
      roots: rootRows.map(({ root }) => root),
    };
  } finally {
    await database.close();
  }
}
