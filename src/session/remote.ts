import type { DuckDBConnection } from '@duckdb/node-api';
import { InferscopeError, messageOf } from '../model/errors.js';
import { quote } from './database.js';
import type { SessionTables } from './views.js';

/** A session in S3 that is read without downloading. */
export interface RemoteSession {
  /** s3://bucket/prefix/SESSION, without a slash at the end. */
  url: string;
  /** File of DuckDB's httpfs extension, installed and named by the user. */
  extension: string;
  access: S3Access;
}

export interface S3Access {
  key: string | null;
  secret: string | null;
  token: string | null;
  region: string | null;
  endpoint: string | null;
}

/** Credentials from the variables that the AWS tools read. */
export const s3Access = (env: NodeJS.ProcessEnv): S3Access => ({
  key: env['AWS_ACCESS_KEY_ID'] ?? null,
  secret: env['AWS_SECRET_ACCESS_KEY'] ?? null,
  token: env['AWS_SESSION_TOKEN'] ?? null,
  region: env['AWS_REGION'] ?? env['AWS_DEFAULT_REGION'] ?? null,
  endpoint: env['AWS_ENDPOINT_URL_S3'] ?? env['AWS_ENDPOINT_URL'] ?? null,
});

/**
 * Loads the extension and lists the session's tables. The connection can access anything until createViews restricts it to them.
 * @throws E_SQL_EXTENSION, E_SESSION_NOT_FOUND
 */
export async function openRemoteTables(
  connection: DuckDBConnection,
  { url, extension, access }: RemoteSession,
): Promise<SessionTables> {
  const version = await connection.runAndReadAll('SELECT library_version FROM pragma_version()');
  try {
    await connection.run(`LOAD ${quote(extension)}`);
  } catch (error) {
    throw new InferscopeError('E_SQL_EXTENSION', {
      what: `sql: DuckDB cannot load ${extension}`,
      why: messageOf(error).split('\n')[0] ?? '',
      fix: `It must be httpfs for DuckDB ${String(version.getRowsJS()[0]![0])} and this platform: INSTALL httpfs in a DuckDB of that version, or the PyPI package duckdb-extension-httpfs.`,
    });
  }
  await connection.run(`CREATE SECRET (${secretOf(access)})`);
  let paths: string[];
  try {
    const result = await connection.runAndReadAll(
      `SELECT file FROM glob(${quote(`${url}/tables/*/*.parquet`)})`,
    );
    paths = result.getRowsJS().map(([path]) => String(path));
  } catch (error) {
    throw notFound(url, messageOf(error).split('\n')[0] ?? '');
  }
  if (paths.length === 0) throw notFound(url, 'There is no file tables/*/*.parquet below it.');
  const files: Record<string, string[]> = {};
  for (const path of paths.toSorted()) (files[path.split('/').at(-2)!] ??= []).push(path);
  return { id: url.split('/').at(-1)!, files };
}

function secretOf({ key, secret, token, region, endpoint }: S3Access): string {
  if (endpoint !== null && !URL.canParse(endpoint))
    throw new InferscopeError('E_USAGE', {
      what: `AWS_ENDPOINT_URL is not a URL: ${endpoint}`,
      why: 'It names the server that holds the sessions.',
      fix: 'For example: export AWS_ENDPOINT_URL=http://127.0.0.1:9000',
    });
  const url = endpoint === null ? null : new URL(endpoint);
  const parts = {
    KEY_ID: key,
    SECRET: secret,
    SESSION_TOKEN: token,
    REGION: region,
    ENDPOINT: url?.host ?? null,
    URL_STYLE: url && 'path',
  };
  return [
    'TYPE s3',
    ...Object.entries(parts).flatMap(([name, value]) => (value === null ? [] : [`${name} ${quote(value)}`])),
    ...(url ? [`USE_SSL ${url.protocol === 'https:'}`] : []),
  ].join(', ');
}

const notFound = (url: string, why: string): InferscopeError =>
  new InferscopeError('E_SESSION_NOT_FOUND', {
    what: `there is no session at ${url}`,
    why,
    fix: 'Name the folder of one session, s3://bucket/prefix/SESSION; AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY set the server and the credentials.',
  });
