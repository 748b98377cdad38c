/** A client of node:http2 on a listener of the test, and what it got, with the fields as they came. */
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import type { TestContext } from 'node:test';

export type Got = {
  readonly status: number;
  /** Name, value ... as on the wire, without `:status`. */
  readonly rawFields: readonly string[];
  readonly body: string;
  /** Interim answers before it. */
  readonly interim: readonly number[];
  /** Error code that the stream was closed with. */
  readonly rstCode: number;
};

export function openSession(t: TestContext, port: number): ClientHttp2Session {
  const session = connect(`http://127.0.0.1:${port}`);
  session.on('error', () => session.destroy());
  t.after(() => session.destroy());
  return session;
}

export function field({ rawFields }: Pick<Got, 'rawFields'>, name: string): string | undefined {
  const at = rawFields.findIndex((each, index) => index % 2 === 0 && each === name);
  return at < 0 ? undefined : rawFields[at + 1];
}

/** Sends a request and waits for the end of its stream, however it comes. */
export function ask(
  session: ClientHttp2Session,
  fields: Readonly<Record<string, string | string[]>>,
  body?: string,
): Promise<Got> {
  const stream = session.request({ ...fields }, { endStream: body === undefined });
  const got = receive(stream);
  if (body !== undefined) stream.end(body);
  return got;
}

export function receive(stream: ClientHttp2Stream): Promise<Got> {
  const interim: number[] = [];
  const chunks: Buffer[] = [];
  let raw: readonly string[] = [];
  stream.on('headers', (fields) => interim.push(Number(fields[':status'])));
  stream.on('response', (_fields, _flags, rawFields: readonly string[]) => {
    raw = rawFields;
  });
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  stream.on('error', () => undefined);
  return new Promise((resolve) => {
    stream.on('close', () => {
      const [, status = '0', ...rawFields] = raw;
      const body = Buffer.concat(chunks).toString('latin1');
      resolve({ status: Number(status), rawFields, body, interim, rstCode: stream.rstCode ?? 0 });
    });
  });
}
