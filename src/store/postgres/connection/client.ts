/**
 * One session with the server, made by `pg`: pipelined, so that any number of statements is on its way at once, with TLS as the
 * address says. It sets nothing that a session keeps, because behind a pooler in transaction mode the next transaction
 * may find another session.
 */
import type { ClientConfig } from 'pg';
import { Client } from 'pg';
import { ignoreError, ownEmitter } from '../../../observe/own-emitter.ts';
import type { Address } from './address.ts';
import { cellTypes } from './cell-types.ts';
import { sqlState } from './failure.ts';

/** Silence after which the kernel asks whether the other side is still there. */
const keepAliveInitialDelayMs = 10_000;

/** Why no connection came about, where neither the server nor the socket gave a code. */
export class ConnectFailed extends Error {
  override readonly name = 'ConnectFailed';
  /** `ENOTLS`: the server has none. `ENOBINDING`: it offers no channel binding. `ECONNCLOSED`: it hung up without a word. */
  readonly code: 'ETIMEDOUT' | 'ENOTLS' | 'ENOBINDING' | 'ECONNCLOSED';

  constructor(code: ConnectFailed['code'], message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

/**
 * Connects within the time.
 * @throws ConnectFailed, the DatabaseError of the server (wrong password, no such database), or the error of the socket
 */
export async function openClient(address: Address, name: string, timeoutMs: number): Promise<Client> {
  const endsAt = performance.now() + timeoutMs;
  try {
    return await connect(address, name, timeoutMs, address.tls.mode !== 'off');
  } catch (error) {
    if (address.tls.mode !== 'optional' || !isRefusalOfTls(error)) throw error;
    return connect(address, name, Math.max(1, endsAt - performance.now()), false);
  }
}

async function connect(
  address: Address,
  name: string,
  timeoutMs: number,
  encrypted: boolean,
): Promise<Client> {
  // What breaks a session is told by its `end` as well, to whoever uses it.
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
 * Ends the attempt where the server asks for the password in a way that is not bound to the channel, or lets one in without
 * any: the one in the middle would do that.
 * @returns what tells why, once the attempt failed
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

/** `pg` gives these three no code, only words of its own. */
function meaningOf(error: unknown, timeoutMs: number): unknown {
  switch (error instanceof Error ? error.message : undefined) {
    case 'timeout expired':
      return new ConnectFailed('ETIMEDOUT', `no connection within ${Math.ceil(timeoutMs)} ms`, error);
    case 'The server does not support SSL connections':
    case 'There was an error establishing an SSL connection':
      return new ConnectFailed('ENOTLS', 'the server does not speak TLS', error);
    case 'Connection terminated unexpectedly':
      return new ConnectFailed('ECONNCLOSED', 'the server closed the connection', error);
    default:
      return error;
  }
}

/** No TLS at all, or none for this user (pg_hba.conf: `hostnossl`), where libpq tries without as well. */
function isRefusalOfTls(error: unknown): boolean {
  if (error instanceof ConnectFailed) return error.code === 'ENOTLS';
  return sqlState(error) === '28000';
}
