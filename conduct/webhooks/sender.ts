/**
 * A sender of webhooks: it delivers to addresses that answer in different ways, and what came is judged at the end (Standard Webhooks 1.0,
 * RFC 9110 for 410, 429 and Retry-After).
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type Clause,
  cannotApply,
  deviates,
  type Finding,
  holds,
  holdsIf,
  verdictOf,
  warns,
} from '../clause.ts';
import { type Judged, type Report, summaryOf } from '../judge.ts';
import { type Verified, verifyDelivery } from './signature.ts';

/** The addresses that the sender is given, and the answer of each. */
export const addresses = {
  '/accepts': '200',
  '/fails': '500, always',
  '/recovers': '503 once, then 200',
  '/limits': '429 with Retry-After: 4 once, then 200',
  '/gone': '410',
  '/redirects': '302 to another port of this machine',
  '/silent': 'none',
} as const;

type Address = keyof typeof addresses;

export type Attempt = {
  readonly path: Address;
  /** Milliseconds since the start of the run. */
  readonly atMs: number;
  readonly request: string;
  readonly verified: Verified | undefined;
  readonly arrivedSeconds: number;
  readonly contentType: string | undefined;
};

type Heard = {
  readonly attempts: readonly Attempt[];
  readonly followed: readonly string[];
  /** Milliseconds from the start of the run to its end. */
  readonly endedMs: number;
};

type SenderClause = Pick<Clause, 'id' | 'title' | 'section' | 'level'> & {
  /** The address whose attempts are its evidence. */
  readonly at: Address | 'all';
  readonly judge: (heard: Heard) => Finding;
};

const standard = 'Standard Webhooks 1.0';
const contentBytesMax = 256 * 1024;
const attemptsMax = 200;
const retryAfterSeconds = 4;
const freshSeconds = 60;
const toleranceMs = 250;
/** The longest time-out that the standard recommends, 30 s, and a pause after it. */
export const silenceMs = 45_000;

export const senderClauses: readonly SenderClause[] = [
  {
    id: 'sender-delivers',
    title: 'An event is delivered',
    ...{ section: standard, level: 'must', at: 'all' },
    judge: ({ attempts }) => holdsIf(attempts.length > 0, 'nothing came'),
  },
  {
    id: 'sender-signs',
    title: 'Every delivery has a signature over its octets, which the secret verifies',
    ...{ section: standard, level: 'must', at: 'all' },
    judge: ({ attempts }) => {
      if (attempts.length === 0) return cannotApply('nothing came');
      const unsigned = attempts.filter(({ verified }) => verified === undefined).length;
      if (unsigned > 0)
        return deviates(
          `${unsigned} of ${attempts.length} deliveries have no signature that the suite knows`,
        );
      const invalid = attempts.filter(({ verified }) => verified?.isValid !== true).length;
      return holdsIf(invalid === 0, `${invalid} of ${attempts.length} signatures are not valid`);
    },
  },
  {
    id: 'sender-time',
    title: 'The signed time of every attempt is that of the attempt',
    ...{ section: standard, level: 'must', at: 'all' },
    judge: ({ attempts }) => {
      const timed = attempts.filter(({ verified }) => verified?.seconds !== undefined);
      if (timed.length === 0) return cannotApply('no delivery has a signed time');
      const stale = timed.find(
        ({ verified, arrivedSeconds }) => Math.abs(arrivedSeconds - (verified?.seconds ?? 0)) > freshSeconds,
      );
      return holdsIf(stale === undefined, `a delivery came with a time ${freshSeconds} s away`);
    },
  },
  {
    id: 'sender-id',
    title: 'Attempts of one message have one id, and messages have different ones',
    ...{ section: standard, level: 'must', at: '/fails' },
    judge: ({ attempts }) => {
      const ids = attempts.filter(({ path }) => path === '/fails').map(({ verified }) => verified?.id);
      if (ids.length < 2) return cannotApply('/fails got no second attempt');
      if (ids.includes(undefined)) return deviates('a delivery has no id');
      return holdsIf(new Set(ids).size < ids.length, 'no attempt repeats the id of the one before');
    },
  },
  {
    id: 'sender-retries',
    title: 'A delivery that is answered 5xx is tried again',
    ...{ section: standard, level: 'must', at: '/recovers' },
    judge: (heard) => {
      const times = timesOf(heard, '/recovers');
      if (times.length === 0) return cannotApply('nothing came to /recovers');
      return holdsIf(times.length > 1, 'the 503 was the end of it');
    },
  },
  {
    id: 'sender-backs-off',
    title: 'The pause before each attempt is longer than the one before, and no two messages have the same',
    ...{ section: standard, level: 'should', at: '/fails' },
    judge: (heard) => {
      const gaps = gapsOf(timesOf(heard, '/fails'));
      if (gaps.length < 2) return cannotApply('/fails got fewer than three attempts in the time');
      const shrinks = gaps.some((gap, index) => index > 0 && gap < (gaps[index - 1] ?? 0) * 0.8);
      return holdsIf(!shrinks, `the pauses were ${gaps.map((gap) => `${Math.round(gap)} ms`).join(', ')}`);
    },
  },
  {
    id: 'sender-retry-after',
    title: 'After a 429 the sender waits as long as Retry-After says',
    ...{ section: 'RFC 9110 §10.2.3', level: 'should', at: '/limits' },
    judge: (heard) => {
      const [gap] = gapsOf(timesOf(heard, '/limits'));
      if (gap === undefined) return cannotApply('/limits got no second attempt in the time');
      return holdsIf(
        gap >= retryAfterSeconds * 1000 - toleranceMs,
        `it came again after ${Math.round(gap)} ms`,
      );
    },
  },
  {
    id: 'sender-gone',
    title: 'After a 410 nothing more is sent to the address',
    ...{ section: standard, level: 'should', at: '/gone' },
    judge: (heard) => {
      const times = timesOf(heard, '/gone');
      if (times.length === 0) return cannotApply('nothing came to /gone');
      return holdsIf(times.length === 1, `${times.length - 1} more deliveries came`);
    },
  },
  {
    id: 'sender-redirect',
    title: 'A redirect is not followed, least of all to another address of a private network',
    ...{ section: standard, level: 'should', at: '/redirects' },
    judge: (heard) => {
      if (timesOf(heard, '/redirects').length === 0) return cannotApply('nothing came to /redirects');
      return holdsIf(heard.followed.length === 0, `it was followed: ${heard.followed[0]}`);
    },
  },
  {
    id: 'sender-timeout',
    title: 'An address that does not answer is given up, and tried again',
    ...{ section: standard, level: 'should', at: '/silent' },
    judge: (heard) => {
      const times = timesOf(heard, '/silent');
      if (times.length === 0) return cannotApply('nothing came to /silent');
      if (times.length > 1) return holds;
      const waited = heard.endedMs - (times[0] ?? 0);
      return waited < silenceMs
        ? cannotApply(`it came once, less than ${silenceMs / 1000} s before the end of the run`)
        : deviates(`it did not come again in the ${Math.floor(waited / 1000)} s that followed`);
    },
  },
  {
    id: 'sender-type',
    title: 'A delivery says what its content is',
    ...{ section: 'RFC 9110 §8.3', level: 'must', at: 'all' },
    judge: ({ attempts }) => {
      if (attempts.length === 0) return cannotApply('nothing came');
      if (attempts.some(({ contentType }) => contentType === undefined))
        return deviates('a delivery has no Content-Type');
      const other = attempts.find(({ contentType }) => !/json/.test(contentType ?? ''));
      return other === undefined ? holds : warns(`it is ${other.contentType}`);
    },
  },
];

export type SenderRun = {
  /** The URLs to register, in the order of `addresses`. */
  readonly urls: readonly string[];
  /** The number of attempts that came to an address so far. */
  readonly heard: (path: Address) => number;
  /** Ends the listening and judges what came, which one of the secrets has to verify. */
  readonly finish: (secrets: readonly string[]) => Promise<Report>;
};

/** Listens on this machine for at most 200 deliveries of up to 256 KiB. @param port 0 for any free one */
export async function listenForSender(port: number): Promise<SenderRun> {
  const arrivals: Arrival[] = [];
  const followed: string[] = [];
  const begun = performance.now();
  const elsewhere = createServer((request, response) => {
    followed.push(`${request.method} ${request.url}`);
    response.end();
  });
  await listening(elsewhere, 0);
  const led = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/private`;
  const server = createServer((request, response) => {
    const path = URL.parse(request.url ?? '', 'http://conduct')?.pathname as Address;
    if (!(path in addresses)) return void response.writeHead(404).end();
    const atMs = performance.now() - begun;
    readContent(request).then(
      (content) => {
        const before = arrivals.filter((each) => each.path === path).length;
        if (arrivals.length < attemptsMax) arrivals.push(arrivalOf(request, content, { path, atMs }));
        respond(response, path, { before, led });
      },
      // A delivery that breaks off or is too long is none.
      () => request.destroy(),
    );
  });
  await listening(server, port);
  const { port: own } = server.address() as AddressInfo;
  const finish: SenderRun['finish'] = async (secrets) => {
    const endedMs = performance.now() - begun;
    for (const each of [server, elsewhere]) {
      each.closeAllConnections();
      // A server that is closed already calls back with an error, which is no matter.
      await new Promise((resolve) => each.close(resolve));
    }
    const attempts = arrivals.map((arrival) => attemptOf(arrival, secrets));
    return senderReport({ attempts, followed, endedMs }, `the sender to http://127.0.0.1:${own}`);
  };
  return {
    urls: Object.keys(addresses).map((path) => `http://127.0.0.1:${own}${path}`),
    heard: (path) => arrivals.filter((each) => each.path === path).length,
    finish,
  };
}

export function senderReport(heard: Heard, subject: string): Report {
  const clauses = senderClauses.map((clause): Judged => {
    const finding = clause.judge(heard);
    const { id, title, section, at } = clause;
    const evidence = heard.attempts.filter(({ path }) => at === 'all' || path === at).slice(0, 3);
    return {
      ...{ id, title, section, group: 'sender', verdict: verdictOf(clause, finding) },
      why: 'why' in finding ? finding.why : '',
      exchanges: evidence.map(({ request, path, atMs }) => ({
        request,
        answer: `${addresses[path]} (after ${Math.round(atMs)} ms)`,
      })),
    };
  });
  return { subject, summary: summaryOf(clauses), clauses, left: [] };
}

function timesOf({ attempts }: Heard, path: Address): readonly number[] {
  return attempts.filter((each) => each.path === path).map(({ atMs }) => atMs);
}

function gapsOf(times: readonly number[]): readonly number[] {
  return times.slice(1).map((time, index) => time - (times[index] ?? 0));
}

type Arrival = Omit<Attempt, 'verified'> & {
  readonly fields: Readonly<Record<string, string>>;
  readonly content: Buffer;
};

function arrivalOf(request: IncomingMessage, content: Buffer, at: Pick<Attempt, 'path' | 'atMs'>): Arrival {
  const fields: Record<string, string> = {};
  for (let index = 0; index < request.rawHeaders.length; index += 2)
    fields[request.rawHeaders[index] ?? ''] = request.rawHeaders[index + 1] ?? '';
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}`);
  const shown = [`${request.method} ${at.path} HTTP/1.1`, ...lines, '', content.toString('utf8', 0, 1000)];
  return {
    ...{ ...at, fields, content, arrivedSeconds: Date.now() / 1000, request: shown.join('\n') },
    contentType: request.headers['content-type'],
  };
}

/** Verified by the secret that fits, or else by the last. */
function attemptOf({ fields, content, ...arrival }: Arrival, secrets: readonly string[]): Attempt {
  const all = secrets.map((secret) => verifyDelivery(fields, content, secret));
  return { ...arrival, verified: all.find((each) => each?.isValid === true) ?? all.at(-1) };
}

type Answering = { readonly before: number; readonly led: string };

function respond(response: ServerResponse, path: Address, { before, led }: Answering): void {
  const isFirst = before === 0;
  if (path === '/silent') return;
  if (path === '/fails') response.writeHead(500);
  else if (path === '/recovers' && isFirst) response.writeHead(503);
  else if (path === '/limits' && isFirst) response.writeHead(429, { 'Retry-After': retryAfterSeconds });
  else if (path === '/gone') response.writeHead(410);
  else if (path === '/redirects') response.writeHead(302, { Location: led });
  response.end();
}

async function readContent(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    length += (chunk as Buffer).length;
    if (length > contentBytesMax) throw new RangeError(`a delivery has more than ${contentBytesMax} octets`);
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}

function listening(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
}
