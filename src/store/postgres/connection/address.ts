/**
 * The database's address, read from a `postgres://` URL as libpq reads one: parts of the URL, and parameters behind `?` for the same things
 * or for TLS. Unknown parameters are refused, because a misspelt `sslmode` would silently weaken the connection. `pg` fills in what the URL
 * omits, as libpq does: PGUSER, PGPASSWORD, ~/.pgpass. Several hosts in one URL are not supported.
 */
import { readFileSync } from 'node:fs';
import type { ConnectionOptions as TlsOptions } from 'node:tls';

export type Address = {
  /** A name, an IP address, or the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string | undefined;
  /** Not enumerable, so that printing the address does not show it. */
  readonly password: string | undefined;
  readonly tls: Tls;
  /** Binds the password to the TLS channel (RFC 5929): `require` refuses a server that does not offer it. */
  readonly channelBinding: 'disable' | 'prefer' | 'require';
  /** Replaces the name that the connection would use. */
  readonly applicationName: string | undefined;
  /** Command-line options for the session; PgBouncer must be configured to pass them. */
  readonly options: string | undefined;
};

export type Tls =
  | { readonly mode: 'off' }
  /** `optional`: connects without TLS to a server that has none. */
  | {
      readonly mode: 'optional' | 'required';
      readonly direct: boolean;
      readonly options: TlsOptions;
    };

const defaultPort = 5432;

/** Parameters without effect here: Comity's sockets always keep alive, and it does not use GSSAPI. */
const idleParameters: ReadonlySet<string> = new Set([
  'fallback_application_name',
  'gssencmode',
  'keepalives',
  'keepalives_count',
  'keepalives_idle',
  'keepalives_interval',
  'target_session_attrs',
  'uselibpqcompat',
]);

const knownParameters: ReadonlySet<string> = new Set([
  'application_name',
  'channel_binding',
  'dbname',
  'host',
  'options',
  'password',
  'port',
  'sslcert',
  'sslkey',
  'sslmode',
  'sslnegotiation',
  'sslpassword',
  'sslrootcert',
  'user',
]);

/** @throws TypeError that never repeats the URL, which may hold a password; errors of reading the files of the ssl parameters */
export function addressOf(url: string): Address {
  if (!url.startsWith('postgres://') && !url.startsWith('postgresql://')) {
    throw new TypeError('the URL of the database must start with postgres://');
  }
  const parsed = URL.parse(url);
  if (parsed === null) {
    throw new TypeError(
      'the URL of the database must have the form postgres://user:password@host:5432/database',
    );
  }
  const parameters = parametersOf(parsed);
  const host = parameters.get('host') ?? hostOf(parsed);
  const database = parameters.get('dbname') ?? decoded(parsed.pathname.slice(1));
  if (database === '') throw new TypeError('the URL must name a database, such as /comity at its end');
  const address = {
    host,
    port: portOf(parameters.get('port') ?? parsed.port),
    database,
    user: parameters.get('user') ?? (decoded(parsed.username) || undefined),
    password: undefined,
    tls: tlsOf(parameters, host.startsWith('/')),
    channelBinding: oneOf(parameters, 'channel_binding', ['disable', 'prefer', 'require']) ?? 'prefer',
    applicationName: parameters.get('application_name'),
    options: parameters.get('options'),
  };
  const password = parameters.get('password') ?? (decoded(parsed.password) || undefined);
  if (address.channelBinding === 'require' && address.tls.mode === 'off') {
    throw new TypeError('channel_binding=require needs TLS, so it cannot be combined with sslmode=disable');
  }
  return Object.defineProperty(address, 'password', { value: password, enumerable: false });
}

/** Host, port and database, without secrets. */
export function describe(address: Address): string {
  const host = address.host.includes(':') ? `[${address.host}]` : address.host;
  return `${host}:${address.port}/${address.database}`;
}

function parametersOf(url: URL): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>();
  for (const [name, value] of url.searchParams) {
    if (name === 'connect_timeout') {
      throw new TypeError('connect_timeout cannot be set in the URL: use COMITY_DATABASE_CONNECT_TIMEOUT_MS');
    }
    if (!knownParameters.has(name) && !idleParameters.has(name)) {
      throw new TypeError(
        `the URL of the database has an unknown parameter "${name}"; it must be one of ${[...knownParameters].join(', ')}`,
      );
    }
    if (value !== '') parameters.set(name, value);
  }
  return parameters;
}

/** TLS by `sslmode` with libpq's meaning: only verify-ca and verify-full verify the server. */
function tlsOf(parameters: ReadonlyMap<string, string>, isSocketFile: boolean): Tls {
  const modes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;
  const mode = oneOf(parameters, 'sslmode', modes) ?? 'prefer';
  const direct = oneOf(parameters, 'sslnegotiation', ['postgres', 'direct']) === 'direct';
  if (mode === 'disable' || isSocketFile) return { mode: 'off' };
  const optional = mode === 'allow' || mode === 'prefer';
  if (direct && optional) {
    throw new TypeError('sslnegotiation=direct needs sslmode=require, verify-ca or verify-full');
  }
  const rootFile = parameters.get('sslrootcert');
  const passphrase = parameters.get('sslpassword');
  const files = {
    ...(rootFile !== undefined && rootFile !== 'system' && { ca: readFileSync(rootFile, 'utf8') }),
    ...fileOption(parameters, 'sslcert', 'cert'),
    ...fileOption(parameters, 'sslkey', 'key'),
    ...(passphrase !== undefined && { passphrase }),
  };
  if (optional) return { mode: 'optional', direct, options: { ...files, rejectUnauthorized: false } };
  if (mode === 'verify-full') return { mode: 'required', direct, options: files };
  if (rootFile === 'system') throw new TypeError('sslrootcert=system needs sslmode=verify-full');
  if (rootFile === undefined) {
    if (mode === 'verify-ca') throw new TypeError('sslmode=verify-ca needs sslrootcert, the file of the CA');
    return { mode: 'required', direct, options: { ...files, rejectUnauthorized: false } };
  }
  // With the CA given, `require` verifies the chain as well (libpq, 34.19.1), but not the host name.
  return { mode: 'required', direct, options: { ...files, checkServerIdentity: () => undefined } };
}

function fileOption(
  parameters: ReadonlyMap<string, string>,
  name: string,
  option: 'cert' | 'key',
): TlsOptions {
  const path = parameters.get(name);
  return path === undefined ? {} : { [option]: readFileSync(path, 'utf8') };
}

function oneOf<const T extends string>(
  parameters: ReadonlyMap<string, string>,
  name: string,
  values: readonly T[],
): T | undefined {
  const given = parameters.get(name);
  if (given === undefined) return undefined;
  const known = values.find((value) => value === given);
  if (known === undefined) throw new TypeError(`${name} must be one of ${values.join(', ')}`);
  return known;
}

/** Removes the brackets of an IPv6 address, which only URLs have. */
function hostOf(url: URL): string {
  const { hostname } = url;
  if (hostname === '') return 'localhost';
  return hostname.startsWith('[') ? hostname.slice(1, -1) : decoded(hostname);
}

function portOf(text: string): number {
  if (text === '') return defaultPort;
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new TypeError('the port of the database must be a whole number from 1 to 65535');
  }
  return port;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new TypeError(
      'the URL of the database has a "%" without two hexadecimal digits after it: write it as %25',
    );
  }
}
