/** Requests of HTTP/1.1: their octets, and the exchange of one on a connection of its own. */
import { type Connection, type Origin, type Outcome, openConnection, reasonOf } from './connection.ts';

export type Request = {
  readonly method: string;
  /** A path on the server, or another form of a request target. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly content?: string | Uint8Array;
  /** Content as JSON, with its Content-Type unless `headers` have one. */
  readonly json?: unknown;
  /** Send no credentials. */
  readonly isAnonymous?: true;
};

/** The Host field, and the fields of every request that is not anonymous. */
type Addressed = { readonly host: string; readonly headers: Readonly<Record<string, string>> };

const restWaitMs = 200;

/** The octets of a request with `Connection: close`, each in one character. */
export function requestText(
  server: Addressed,
  { method, path, headers = {}, content, json, isAnonymous }: Request,
): string {
  const body = json === undefined ? content : JSON.stringify(json);
  const octets = body === undefined ? undefined : Buffer.from(body as string);
  const fields = new Map<string, string>([['Host', server.host]]);
  const set = (given: Readonly<Record<string, string>>): void => {
    for (const [name, value] of Object.entries(given)) {
      const same = [...fields.keys()].find((each) => each.toLowerCase() === name.toLowerCase());
      fields.set(same ?? name, value);
    }
  };
  set({ 'User-Agent': 'comity-conduct', Accept: '*/*' });
  if (isAnonymous === undefined) set(server.headers);
  if (json !== undefined) set({ 'Content-Type': 'application/json' });
  if (octets !== undefined) set({ 'Content-Length': String(octets.byteLength) });
  set({ Connection: 'close', ...headers });
  const lines = [...fields].map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return `${method} ${path} HTTP/1.1\r\n${lines}\r\n${octets?.toString('latin1') ?? ''}`;
}

/** Sends octets on a connection of their own, and reads the first answer. */
export async function exchange(
  origin: Origin,
  octets: string,
  method: string,
  waitMs?: number,
): Promise<Outcome> {
  let connection: Connection;
  try {
    connection = await openConnection(origin);
  } catch (error) {
    return { none: `no connection could be made: ${reasonOf(error)}` };
  }
  try {
    connection.write(Buffer.from(octets, 'latin1'));
    const outcome = await connection.answer(method, waitMs);
    if ('none' in outcome || outcome.content.length > 0 || outcome.status === 101) return outcome;
    // An answer without content may be followed by some, which no client reads as a part of it.
    await connection.ends(restWaitMs);
    return { ...outcome, rest: await connection.peek(0) };
  } finally {
    connection.close();
  }
}
