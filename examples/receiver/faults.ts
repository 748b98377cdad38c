/**
 * The ways in which a receiver of webhooks can behave, good and bad, one by one. Each is the first segment of a path, and most take
 * what follows as a number: `/status/503`, `/slow/2000`. They are what a sender must outlive.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';

export type Asked = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** What follows in the path, as numbers. */
  readonly numbers: readonly number[];
  /** How often this delivery or event has come to this path, this time included. */
  readonly times: number;
  /** Calls back after a time, unless the receiver is closed before. */
  readonly later: (ms: number, act: () => void) => void;
};

/** Answers, or does what it does in place of an answer. @returns the status that was sent; null: none */
export type Behaviour = (asked: Asked) => number | null;

const statusDefault = 503;
const retryAfterSecondsDefault = 5;
const slowMsDefault = 2000;
const trickleMs = 100;
const hugeBytes = 10 * 1024 ** 3;
const pieceBytes = 64 * 1024;
const bombBytes = 1024 ** 3;
const bombMemberBytes = 64 * 1024 ** 2;
const longHeadBytes = 1024 ** 2;

export const behaviours: ReadonlyMap<string, Behaviour> = new Map<string, Behaviour>([
  ['ok', ({ response }) => end(response, 204)],
  ['status', ({ response, numbers: [status = statusDefault] }) => end(response, status)],
  [
    'retry-after',
    ({ response, numbers: [seconds = retryAfterSecondsDefault, status = 429] }) =>
      end(response, status, { 'Retry-After': String(seconds) }),
  ],
  [
    'slow',
    ({ response, numbers: [ms = slowMsDefault], later }) => {
      later(ms, () => end(response, 204));
      return 204;
    },
  ],
  ['hang', () => null],
  ['trickle', trickle],
  ['never-closes', neverCloses],
  ['huge', huge],
  [
    'reset',
    ({ request }) => {
      request.socket.resetAndDestroy();
      return null;
    },
  ],
  ['redirect', ({ response }) => end(response, 302, { Location: '/ok' })],
  ['gone', ({ response }) => end(response, 410)],
  ['flaky', ({ response, numbers: [nth = 3], times }) => end(response, times >= nth ? 204 : statusDefault)],
  ['gzip-bomb', gzipBomb],
  [
    'garbage',
    ({ request }) => {
      request.socket.end('I speak no HTTP.\r\n\r\n');
      return null;
    },
  ],
  ['long-head', ({ response }) => end(response, 204, { 'X-Long': 'x'.repeat(longHeadBytes) })],
]);

/** Answered before the content of the request has been read. */
export const earlyBehaviours: ReadonlyMap<string, Behaviour> = new Map<string, Behaviour>([
  ['early', ({ response }) => end(response, 204)],
]);

function end(
  response: ServerResponse,
  status: number,
  fields: Readonly<Record<string, string>> = {},
): number {
  response.writeHead(status, fields);
  response.end(status === 204 || status === 304 ? undefined : `${status}\n`);
  return status;
}

/** One octet at a time, and many of them. */
function trickle({ response, later }: Asked): number {
  response.writeHead(200, { 'Content-Length': '100000' });
  const drip = (): void => {
    if (response.destroyed) return;
    response.write('.');
    later(trickleMs, drip);
  };
  drip();
  return 200;
}

/** A content that begins and does not end, in silence. */
function neverCloses({ response }: Asked): number {
  response.writeHead(200);
  response.write('Wait for it');
  return 200;
}

/** Ten gigabytes, as fast as they are taken. */
function huge({ response }: Asked): number {
  response.writeHead(200, { 'Content-Length': String(hugeBytes) });
  const piece = Buffer.alloc(pieceBytes, 'x');
  let left = hugeBytes;
  const pour = (): void => {
    while (left > 0 && !response.destroyed) {
      left -= pieceBytes;
      if (!response.write(piece)) {
        response.once('drain', pour);
        return;
      }
    }
  };
  pour();
  return 200;
}

/** A megabyte that becomes a gigabyte: members of a gzip file may follow each other (RFC 1952 §2.2). */
function gzipBomb({ response }: Asked): number {
  response.writeHead(200, { 'Content-Encoding': 'gzip' });
  const member = gzipSync(Buffer.alloc(bombMemberBytes));
  for (let size = 0; size < bombBytes; size += bombMemberBytes) response.write(member);
  response.end();
  return 200;
}
