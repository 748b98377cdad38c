/**
 * One session with the server, made by `pg`: pipelined, so that any number of statements is under way at once, with TLS as the address
 * says. It changes no session state, because behind a pooler in transaction mode the next transaction may run in another session.
 */
import { Client, type ClientConfig, type CustomTypesConfig } from 'pg';
import { ignoreError, ownEmitter } from '../../../observe/own-emitter.ts';
import { sqlState } from '../postgres-failure.ts';
import type { Address } from './address.ts';

/** Silence after which the kernel probes the other side. */
const keepAliveInitialDelayMs = 10_000;

/** Thrown if the connection failed without a code from the server or the socket. */
export class ConnectFailed extends Error {
  override readonly name = 'ConnectFailed';
  /** `ENOTLS`: the server has no TLS. `ENOBINDING`: it offers no channel binding. `ECONNCLOSED`: it closed the connection. */
  readonly code: 'ETIMEDOUT' | 'ENOTLS' | 'ENOBINDING' | 'ECONNCLOSED';

  constructor(code: ConnectFailed['code'], message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

/** Connects within the time. @throws ConnectFailed, the server's DatabaseError (wrong password, no such database), or the socket's error */
export async function openClient(address: Address, name: string, timeoutMs: number): Promise<Client> {
  const endsAt = performance.now() + timeoutMs;
  try {
    return await connect(address, name, timeoutMs, address.tls.mode !== 'off');
  } catch (error) {
    if (address.tls.mode !== 'optional' || !isRefusalOfTls(error)) throw error;
    return connect(address, name, Math.max(1, endsAt - performance.now()), false);
  }
}

const cancelTimeoutMs = 5_000;

/** Members that `pg` has and does not declare. */
type Cancelling = { readonly processID: number; readonly secretKey: number };
type CancelConnection = Client['connection'] & {
  connect(port: number, host: string): void;
  requestSsl(): void;
  cancel(processNumber: number, secretKey: number): void;
};

/**
 * Asks the server, on a connection of its own, to cancel what the session does. A session that waits for a replica does not notice that its
 * client is gone, and would stay. Best effort: nothing reports if the request arrived.
 */
export function cancelWork(address: Address, session: Client): void {
  const { processID, secretKey } = session as unknown as Cancelling;
  const { tls, host, port } = address;
  const isEncrypted = tls.mode !== 'off' && tls.mode !== 'optional';
  const client = ownEmitter(
    new Client(configOf(address, 'comity cancel', cancelTimeoutMs, isEncrypted)),
    ignoreError,
  );
  const connection = ownEmitter(client.connection as CancelConnection, ignoreError);
  const timer = setTimeout(() => connection.stream.destroy(), cancelTimeoutMs).unref();
  connection.on('end', () => clearTimeout(timer));
  if (isEncrypted && !tls.direct) connection.once('connect', () => connection.requestSsl());
  connection.once(isEncrypted ? 'sslconnect' : 'connect', () => connection.cancel(processID, secretKey));
  connection.connect(port, host);
}

async function connect(
  address: Address,
  name: string,
  timeoutMs: number,
  encrypted: boolean,
): Promise<Client> {
  // The session's user learns of a broken session by `end`.
  const client = ownEmitter(new Client(configOf(address, name, timeoutMs, encrypted)), ignoreError);
  const refusal = address.channelBinding === 'require' ? requireChannelBinding(client) : undefined;
  try {
    await client.connect();
    return client;
  } catch (error) {
    client.connection.stream.destroy();
    throw refusal?.() ?? meaningOf(error, timeoutMs);
  }
}

function configOf(address: Address, name: string, timeoutMs: number, encrypted: boolean): ClientConfig {
  const { host, port, database, user, password, tls, options } = address;
  return {
    host,
    port,
    database,
    ...(user !== undefined && { user }),
    ...(password !== undefined && { password }),
    ...(options !== undefined && { options }),
    application_name: address.applicationName ?? name,
    connectionTimeoutMillis: timeoutMs,
    enableChannelBinding: address.channelBinding !== 'disable',
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveInitialDelayMs,
    pipeline: true,
    types: cellTypes,
    ssl: encrypted && tls.mode !== 'off' ? { ...tls.options } : false,
    ...(encrypted && tls.mode !== 'off' && tls.direct && { sslnegotiation: 'direct' as const }),
  };
}

/**
 * Ends the attempt if the server requests the password without channel binding, or requests none: a man in the middle would do that.
 * @returns a function that gives the reason, once the attempt failed
 */
function requireChannelBinding(client: Client): () => ConnectFailed | undefined {
  let refusal: ConnectFailed | undefined;
  let bound = false;
  const refuse = (): void => {
    refusal = new ConnectFailed('ENOBINDING', 'the server offers no channel binding, which the URL requires');
    client.connection.stream.destroy(refusal);
  };
  const { connection } = client;
  connection.prependListener('authenticationSASL', (message: { readonly mechanisms: readonly string[] }) => {
    if (!message.mechanisms.includes('SCRAM-SHA-256-PLUS')) refuse();
  });
  connection.prependListener('authenticationSASLFinal', () => {
    bound = true;
  });
  connection.prependListener('authenticationCleartextPassword', refuse);
  connection.prependListener('authenticationMD5Password', refuse);
  connection.prependListener('authenticationOk', () => {
    if (!bound) refuse();
  });
  return () => refusal;
}

/** `pg` gives these three only a text, no code. */
function meaningOf(error: unknown, timeoutMs: number): unknown {
  switch (error instanceof Error ? error.message : undefined) {
    case 'timeout expired':
      return new ConnectFailed('ETIMEDOUT', `no connection within ${Math.ceil(timeoutMs)} ms`, error);
    case 'The server does not support SSL connections':
    case 'There was an error establishing an SSL connection':
      return new ConnectFailed('ENOTLS', 'the server does not support TLS', error);
    case 'Connection terminated unexpectedly':
      return new ConnectFailed('ECONNCLOSED', 'the server closed the connection', error);
    default:
      return error;
  }
}

/** The server has no TLS at all, or none for this user (pg_hba.conf: `hostnossl`); libpq then tries without TLS as well. */
function isRefusalOfTls(error: unknown): boolean {
  if (error instanceof ConnectFailed) return error.code === 'ENOTLS';
  return sqlState(error) === '28000';
}

/** Fixed type numbers of pg_type. */
const boolean = 16;
const numbers: ReadonlySet<number> = new Set([20 /* int8 */, 21, 23, 26 /* oid */, 700, 701 /* float8 */]);

/**
 * Converts the server's integers and doubles to numbers, and booleans; everything else stays text, so that no date is built and no JSON
 * parsed. A bigint beyond 2^53 would lose digits; revisions, times in milliseconds and counts stay far below.
 */
const cellTypes: CustomTypesConfig = {
  getTypeParser: ((oid: number) => {
    if (numbers.has(oid)) return Number;
    return oid === boolean ? isTrue : asItCame;
  }) as CustomTypesConfig['getTypeParser'],
};

function isTrue(text: string): boolean {
  return text === 't';
}

function asItCame(text: string): string {
  return text;
}
