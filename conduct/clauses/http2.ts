/** HTTP/2 (RFC 9113): by ALPN over TLS, with prior knowledge in clear. A server without it has nothing to judge. */
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from 'node:http2';
import { fieldOf } from '../answer.ts';
import { type Clause, deviates, holds, holdsIf } from '../clause.ts';
import type { HeaderFields } from '../frames.ts';
import { CannotApply, NoAnswer, type Visit } from '../visit.ts';
import { memberOf, missingPath } from './subjects.ts';

const waitMs = 5000;

export const http2Clauses: readonly Clause[] = [
  {
    id: 'h2-same-answer',
    group: 'http2',
    title: 'HTTP/2 has the status, the ETag and the content of HTTP/1.1',
    section: 'RFC 9113 §8',
    level: 'must',
    judge: async (visit) =>
      overHttp2(visit, async (request) => {
        const path = memberOf(visit);
        const old = await visit.send({ method: 'GET', path });
        const answer = await request('GET', path);
        if (answer.status !== old.status)
          return deviates(`HTTP/1.1 is answered ${old.status}, HTTP/2 ${answer.status}`);
        if (fieldOf(old, 'ETag') !== answer.headers.etag) return deviates(`ETag is ${answer.headers.etag}`);
        return holdsIf(answer.content.equals(old.content), 'the content is another');
      }),
  },
  {
    id: 'h2-connection-fields',
    group: 'http2',
    title: 'An answer of HTTP/2 has no field of a connection',
    section: 'RFC 9113 §8.2.2',
    level: 'must',
    judge: async (visit) =>
      overHttp2(visit, async (request) => {
        const { headers } = await request('GET', memberOf(visit));
        const found = ['connection', 'keep-alive', 'transfer-encoding', 'upgrade', 'proxy-connection'].filter(
          (each) => each in headers,
        );
        return holdsIf(found.length === 0, `it has ${found.join(', ')}`);
      }),
  },
  {
    id: 'h2-head',
    group: 'http2',
    title: 'HEAD over HTTP/2 has no content, and an error ends its stream alone',
    section: 'RFC 9113 §8.1',
    level: 'must',
    judge: async (visit) =>
      overHttp2(visit, async (request) => {
        const head = await request('HEAD', memberOf(visit));
        if (head.content.length > 0) return deviates(`HEAD has ${head.content.length} octets`);
        await request('GET', missingPath(visit));
        const after = await request('GET', memberOf(visit));
        return holdsIf(after.status === 200, `after a missing member the next is answered ${after.status}`);
      }),
  },
  {
    id: 'h2-at-once',
    group: 'http2',
    title: 'Streams of one connection are answered each by its own request',
    section: 'RFC 9113 §5',
    level: 'must',
    judge: async (visit) =>
      overHttp2(visit, async (request) => {
        const paths = [memberOf(visit), missingPath(visit)];
        const answers = await Promise.all(
          Array.from({ length: 20 }, (_, index) => request('GET', paths[index % 2] ?? '/')),
        );
        const statuses = answers.map(({ status }) => status);
        const isRight = statuses.every((status, index) => (status === 200) === (index % 2 === 0));
        return isRight ? holds : deviates(`they are answered ${statuses.join(', ')}`);
      }),
  },
];

type Answered = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly content: Buffer };
type Ask = (method: string, path: string) => Promise<Answered>;

async function overHttp2<T>(visit: Visit, judge: (ask: Ask) => Promise<T>): Promise<T> {
  const session = await openSession(visit);
  try {
    return await judge((method, path) => ask(session, visit, method, path));
  } finally {
    session.destroy();
  }
}

/** @throws CannotApply where the server does not speak it */
function openSession({ target }: Visit): Promise<ClientHttp2Session> {
  const { address, url } = target;
  const session = connect(url, { rejectUnauthorized: !address.isInsecure });
  return new Promise((resolve, reject) => {
    const fail = (): void => {
      session.destroy();
      reject(
        new CannotApply(`the server does not speak HTTP/2${address.scheme === 'http' ? ' in clear' : ''}`),
      );
    };
    const timer = setTimeout(fail, waitMs);
    session.on('error', fail);
    session.on('close', fail);
    // A server of HTTP/1.1 may take the connection; the first frame that it must send is SETTINGS.
    session.once('remoteSettings', () => {
      clearTimeout(timer);
      resolve(session);
    });
  });
}

function ask(
  session: ClientHttp2Session,
  { target, note }: Visit,
  method: string,
  path: string,
): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ':method': method,
      ':path': path,
      accept: '*/*',
      ...lowerCase(target.headers),
    });
    const chunks: Buffer[] = [];
    let headers: IncomingHttpHeaders & { ':status'?: number | undefined } = {};
    stream.setTimeout(waitMs, () => stream.close());
    stream.on('response', (fields) => {
      headers = fields;
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', (error) => reject(new NoAnswer(`${method} ${path} over HTTP/2: ${error.message}`)));
    stream.on('close', () => {
      const status = Number(headers[':status'] ?? 0);
      const content = Buffer.concat(chunks);
      const fields = Object.entries(headers).map(([name, value]) => [name, String(value)] as const);
      const line = { status, reason: '', version: 'HTTP/2', interim: [], faults: [], rest: Buffer.alloc(0) };
      note(`${method} ${path} HTTP/2\n`, { ...line, fields, content });
      resolve({ status, headers, content });
    });
    stream.end();
  });
}

/** A GET of the collection. */
export function fieldsOverHttp2({ target }: Visit): HeaderFields {
  const { address, host, collection, headers } = target;
  return [
    [':method', 'GET'],
    [':scheme', address.scheme],
    [':authority', host],
    [':path', collection],
    ['accept', '*/*'],
    ...Object.entries(lowerCase(headers)),
  ];
}

function lowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
