/**
 * Habits of clients with QUERY that Comity cannot show: a small server of its own answers 503 once, ends connections, redirects, lets answers be
 * stored and codes them, and counts what arrives.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib';
import type { Agent, Answer } from './line-exchange.ts';

const codings = { gzip: gzipSync, br: brotliCompressSync, zstd: zstdCompressSync };
type Coding = keyof typeof codings;
const redirects = [301, 302, 303, 307, 308] as const;
const content = '{"filter":{}}';
const other = '{"filter":{"done":true}}';
/** A second attempt before this has not waited for `Retry-After: 2`. */
const waitedMs = 1900;

/** The client cannot send QUERY, or keeps no connection. */
const notSent = '-';

type Arrival = {
  readonly method: string;
  readonly content: string;
  readonly atMs: number;
  readonly port: number;
  readonly codings: string;
};

export type Habits = {
  readonly retry: readonly string[];
  readonly follow: readonly string[];
  readonly decode: readonly string[];
};

export const heads = {
  retry: ['503 and `Retry-After: 2`', 'reset', 'kept connection closed'],
  follow: redirects.map(String),
  decode: ['`Accept-Encoding`', ...Object.keys(codings)],
};

/** The server, whose paths are `/KIND/WORD/ID`; `arrivalsAt` gives what came to the paths that end with an id. */
export async function startHabitServer(): Promise<{
  readonly url: string;
  readonly arrivalsAt: (id: string) => readonly Arrival[];
  readonly stop: () => void;
}> {
  const arrivals = new Map<string, Arrival[]>();
  const server = createServer((request, response) => {
    void respond(request, response);
  });
  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, kind = '', word = '', id = ''] = (request.url ?? '').split('/');
    const received = await text(request).catch(() => '');
    const of = arrivals.get(`${kind} ${id}`) ?? [];
    arrivals.set(`${kind} ${id}`, of);
    of.push({
      ...{ method: request.method ?? '', content: received, atMs: performance.now() },
      ...{ port: request.socket.remotePort ?? 0, codings: request.headers['accept-encoding'] ?? '' },
    });
    if (kind === 'retry' && of.length === 1)
      response.writeHead(503, { 'Retry-After': '2', 'Content-Length': '0' }).end();
    else if (kind === 'reset' && of.length === 1) request.socket.resetAndDestroy();
    else if (kind === 'kept' && of.length === 2) request.socket.destroy();
    else if (kind === 'redirect')
      response.writeHead(Number(word), { Location: `/target/${word}/${id}`, 'Content-Length': '0' }).end();
    else if (kind === 'cached')
      response
        .writeHead(200, { 'Cache-Control': 'max-age=60', Date: new Date().toUTCString() })
        .end(received);
    else if (kind === 'coded') {
      const coded = codings[word as Coding](Buffer.from('plain text'));
      response.writeHead(200, { 'Content-Encoding': word, 'Content-Type': 'text/plain' }).end(coded);
    } else response.end('plain text');
  }
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrivalsAt: (id) => arrivals.get(id) ?? [],
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

type Server = Awaited<ReturnType<typeof startHabitServer>>;

export async function habitsOf(server: Server, agent: Agent): Promise<Habits> {
  const id = crypto.randomUUID();
  const query = (path: string, method = 'QUERY'): Promise<Answer> =>
    agent.send({
      ...{ method, url: `${server.url}/${path}/${id}` },
      ...(method === 'QUERY' ? { headers: { 'Content-Type': 'application/json' }, content } : {}),
    });
  await query('reset/-'); // First, for it needs a connection that is new.
  await query('retry/-');
  await query('kept/-', 'GET');
  await query('kept/-');
  const follow: string[] = [];
  for (const status of redirects) {
    const own = `${id}${status}`;
    const url = `${server.url}/redirect/${status}/${own}`;
    await agent.send({ method: 'QUERY', url, headers: { 'Content-Type': 'application/json' }, content });
    const isSent = server.arrivalsAt(`redirect ${own}`).length > 0;
    follow.push(isSent ? followed(server.arrivalsAt(`target ${own}`)) : notSent);
  }
  const decode: string[] = [];
  for (const coding of Object.keys(codings)) {
    const answer = await query(`coded/${coding}`);
    const isRead = answer.content === 'plain text';
    decode.push(isRead ? 'yes' : answer.status === 0 ? 'an error' : 'no');
  }
  const [coded] = server.arrivalsAt(`coded ${id}`);
  const reset = server.arrivalsAt(`reset ${id}`);
  if (coded === undefined) decode.fill(notSent);
  return {
    retry: [
      retried(server.arrivalsAt(`retry ${id}`)),
      reset.length === 0 ? notSent : reset.length > 1 ? 'sent again' : 'no',
      kept(server.arrivalsAt(`kept ${id}`)),
    ],
    follow,
    decode: [coded === undefined ? notSent : coded.codings || 'none', ...decode],
  };
}

function retried([first, second]: readonly Arrival[]): string {
  if (first === undefined) return notSent;
  if (second === undefined) return 'no';
  const ms = second.atMs - first.atMs;
  const how = second.method === 'QUERY' && second.content === content ? '' : `, as ${second.method}`;
  return `after ${(ms / 1000).toFixed(1)} s${ms >= waitedMs ? '' : ', too soon'}${how}`;
}

function kept([first, second, third]: readonly Arrival[]): string {
  if (first?.port !== second?.port) return notSent;
  return third === undefined ? 'no' : 'sent again';
}

function followed([target]: readonly Arrival[]): string {
  if (target === undefined) return 'no';
  return target.content === content || target.method === 'GET'
    ? target.method
    : `${target.method} without content`;
}

/** Two times one QUERY, then another content at the same URL; a GET twice shows that the cache stores. */
export async function cacheOf(server: Server, agent: Agent): Promise<string> {
  const id = crypto.randomUUID();
  const send = (sent: string): Promise<Answer> =>
    agent.send({
      ...{ method: 'QUERY', url: `${server.url}/cached/-/${id}`, content: sent },
      headers: { 'Content-Type': 'application/json' },
    });
  const [first, , third] = [await send(content), await send(content), await send(other)];
  const count = server.arrivalsAt(`cached ${id}`).length;
  const got = `${id}-got`;
  for (let times = 0; times < 2; times += 1)
    await agent.send({ method: 'GET', url: `${server.url}/cached/-/${got}` });
  const isStoring = server.arrivalsAt(`cached ${got}`).length === 1;
  if (first.status === 0) return `an error: ${first.content.slice(0, 120)}`;
  if (third.content !== other) return 'answers another content from it';
  if (count === 2) return 'yes, by URL and content';
  return isStoring ? 'not stored' : 'not stored, nor is a GET';
}
