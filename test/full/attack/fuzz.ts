/**
 * Random HTTP/2 frame sequences and HTTP/1.1 requests, made of sound parts that are broken with a seed, so that a failure can be repeated. Each sequence
 * goes over a connection of its own, in one packet; when the server has been silent for a moment the client ends its side, and the server has to close.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { endHeaders, frame, frameTypes, setting, uint32 } from '../../../conduct/frames.ts';
import { send } from '../../harness/exchange.ts';
import { headerBlock } from '../../wire/http2/raw-session.ts';

export type Numbers = {
  /** From 0 to `below` - 1. */
  readonly below: (below: number) => number;
  readonly pick: <T>(from: readonly T[]) => T;
};

/** Mulberry32: 32 bits of state are enough to repeat a run. */
export function numbersFrom(seed: number): Numbers {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (bound: number): number => Math.floor(next() * bound);
  return { below, pick: (from) => from[below(from.length)] as (typeof from)[number] };
}

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
const methods = ['GET', 'POST', 'HEAD', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'QUERY', 'PATCH', 'BREW', ''];
const paths = [
  '/health/live',
  '/api/v1/products',
  '/api/v1/notes/1',
  '/api/v1/realtime',
  '/api/v1/events',
  '*',
  '',
  '/%',
];
const fields = [
  ...['content-length', 'content-type', 'te', 'connection', 'upgrade', 'cookie', 'accept', 'expect', 'host'],
  ...['transfer-encoding', 'authorization', 'if-match', 'range', 'x', ':path', 'Upper', 'x-forwarded-for'],
];
/** That leave the framing and the connection as they are. */
const soundFields = [
  'accept',
  'cookie',
  'if-match',
  'if-none-match',
  'range',
  'prefer',
  'x',
  'te',
  'authorization',
  'x-api-key',
];
const values = [
  '0',
  '1',
  '9',
  '-1',
  'trailers',
  'close',
  'websocket',
  'application/json',
  '100-continue',
  '"a"',
  '',
  ' x ',
  '\u00ff',
];

function payload({ below }: Numbers, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => below(256)));
}

function header({ below, pick }: Numbers): Buffer {
  if (below(8) === 0) return payload({ below, pick }, below(40));
  const list = [':method', pick(methods), ':scheme', 'http', ':authority', 'a', ':path', pick(paths)];
  if (below(10) === 0) list.push(':protocol', pick(['websocket', 'connect-udp', 'x']));
  for (let count = below(4); count > 0; count -= 1) list.push(pick(fields), pick(values));
  if (below(10) === 0) list.splice(2 * below(list.length / 2), 2);
  return headerBlock(list);
}

/** On stream 1, without the end of its content. */
function soundRequest({ pick }: Numbers): Buffer {
  const list = [':method', pick(['GET', 'POST', 'PUT', 'QUERY']), ':scheme', 'http', ':authority', 'a'];
  list.push(':path', pick(['/health/live', '/api/v1/products', '/api/v1/notes/1', '/api/v1/events']));
  if (pick([true, false])) list.push('content-length', pick(['0', '1', '9']));
  return frame(frameTypes.headers, endHeaders, 1, headerBlock(list));
}

/** Preface, SETTINGS, and up to a dozen frames on a few streams. */
export function frameSequence(numbers: Numbers): Buffer {
  const { below, pick } = numbers;
  const parts: Buffer[] = [preface, frame(frameTypes.settings, 0, 0)];
  // What breaks a program is mostly what comes behind a request that it has taken.
  if (below(3) > 0) parts.push(soundRequest(numbers));
  for (let count = 1 + below(12); count > 0; count -= 1) {
    const stream = pick([0, 1, 1, 1, 3, 3, 5, 2, 7, 0x7fffffff]);
    const type = pick([0, 0, 1, 1, 1, 1, 2, 3, 3, 4, 5, 6, 7, 8, 8, 9, 10, 16, 255]);
    const flags = pick([0, 1, endHeaders, endHeaders, endHeaders | 1, 0x8, 0x20, 0x2d, below(256)]);
    parts.push(frame(type, flags, stream, contentOf(numbers, type)));
  }
  const whole = Buffer.concat(parts);
  if (below(12) === 0) whole[preface.length + below(whole.length - preface.length)] = below(256);
  return below(12) === 0 ? whole.subarray(0, preface.length + below(whole.length - preface.length)) : whole;
}

function contentOf(numbers: Numbers, type: number): Buffer {
  const { below, pick } = numbers;
  switch (below(10) === 0 ? -1 : type) {
    case frameTypes.headers:
    case frameTypes.continuation:
      return header(numbers);
    case frameTypes.rstStream:
    case frameTypes.windowUpdate:
      return uint32(pick([0, 1, 8, 0x7fffffff, 0xffffffff]));
    case frameTypes.settings:
      return setting(below(12), pick([0, 1, 2, 65_535, 0x7fffffff, 0xffffffff]));
    case frameTypes.ping:
      return payload(numbers, 8);
    case frameTypes.goaway:
      return Buffer.concat([uint32(below(8)), uint32(below(16))]);
    case frameTypes.priority:
      return Buffer.concat([uint32(below(8)), Buffer.from([below(256)])]);
    default:
      return payload(numbers, pick([0, 1, 3, 4, 5, 8, 30, 300]));
  }
}

const soundMethods = ['GET', 'GET', 'POST', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'QUERY', 'PATCH'];
const soundPaths = paths.filter((path) => path.startsWith('/api') || path.startsWith('/health'));

/**
 * One to four requests of HTTP/1.1, pipelined, with fields, framing and line ends that may be wrong; in half of the texts all but a few fields
 * and the content are sound, because most others are refused before anything looks at them.
 */
export function requestText(numbers: Numbers): Buffer {
  const { below } = numbers;
  const isSound = below(2) === 0;
  let text = '';
  for (let count = 1 + below(4); count > 0; count -= 1) {
    text += isSound && below(6) > 0 ? soundText(numbers) : brokenText(numbers);
  }
  const whole = Buffer.from(text, 'latin1');
  if (whole.length > 0 && below(10) === 0) whole[below(whole.length)] = below(256);
  return whole;
}

function soundText({ below, pick }: Numbers): string {
  const content = pick(['', '', '{"name":"x"}', '{"text":"a","tags":[1,null]}', 'abc', '[{"op":"add"}]']);
  let text = `${pick(soundMethods)} ${pick(soundPaths)} HTTP/1.1\r\nHost: a\r\n`;
  for (let more = below(4); more > 0; more -= 1) text += `${pick(soundFields)}: ${pick(values)}\r\n`;
  if (content === '') return `${text}\r\n`;
  text += `Content-Type: ${pick(['application/json', 'application/json-patch+json', 'text/plain', 'application/x-www-form-urlencoded'])}\r\n`;
  if (below(2) === 0) return `${text}Content-Length: ${content.length}\r\n\r\n${content}`;
  return `${text}Transfer-Encoding: chunked\r\n\r\n${content.length.toString(16)}\r\n${content}\r\n0\r\n\r\n`;
}

function brokenText({ below, pick }: Numbers): string {
  const line = pick(['\r\n', '\r\n', '\r\n', '\r\n', '\r\n', '\n', '\r']);
  let text = `${pick(methods)} ${pick(paths)} ${pick(['HTTP/1.1', 'HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0', 'HTTP/2.0', ''])}${line}`;
  if (below(6) > 0) text += `Host: a${line}`;
  for (let more = below(5); more > 0; more -= 1)
    text += `${pick(fields)}${pick([':', ': ', ' : ', ''])}${pick(values)}${line}`;
  if (below(4) === 0)
    text += `Upgrade: ${pick(['h2c', 'websocket'])}${line}Connection: Upgrade, HTTP2-Settings${line}HTTP2-Settings: AAMAAABk${line}`;
  if (below(4) > 0) return `${text}${line}${pick(['', '', '{"name":"x"}', 'abc'])}`;
  return `${text}Transfer-Encoding: chunked${line}${line}${pick(['1', '3', 'ffffffff', 'x'])}${line}abc${line}0${line}${line}`;
}

/** Silence after which the client ends its side: the server awaits the rest of a frame or request, or has nothing more to say. */
const silenceMs = 25;
/** What the server has to close after the client's end; it may wait as long for content or for room in a window as anywhere. */
const endMs = 5_000;
/** Enough that the silence of some leaves neither process idle. */
const atOnce = 128;

/**
 * Octets sent before the client's end are read in any case, however late the server is: it closes only when it has read the end.
 *
 * @returns whether the server sent anything
 */
async function exchange(port: number, octets: Buffer): Promise<boolean> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  socket.on('error', () => socket.destroy());
  socket.on('data', () => undefined);
  socket.setTimeout(silenceMs, () => {
    if (!socket.connecting) socket.end();
  });
  socket.on('end', () => socket.destroy());
  const timer = setTimeout(() => socket.destroy(), endMs);
  socket.write(octets);
  await once(socket, 'close');
  clearTimeout(timer);
  return socket.bytesRead > 0;
}

export type Fuzz = {
  readonly port: number;
  readonly seed: number;
  readonly count: number;
  readonly make: (numbers: Numbers) => Buffer;
  /** Called after each batch; throws where the program is no longer well. */
  readonly check: () => void;
  /** Ends early, on the clock of `performance.now`. */
  readonly untilMs?: number;
};

/** Sequences between two looks at the health of the program. */
const batch = 2048;

export type Fuzzed = { readonly sent: number; readonly answered: number };

/** Sends the sequences of the seed, several at once, and asks for `/health/live` after each batch. */
export async function fuzz({ port, seed, count, make, check, untilMs = Infinity }: Fuzz): Promise<Fuzzed> {
  let sent = 0;
  let answered = 0;
  while (sent < count && performance.now() < untilMs) {
    const end = Math.min(count, sent + batch);
    const begun = sent;
    const worker = async (): Promise<void> => {
      while (sent < end) {
        const octets = make(numbersFrom(seed + sent));
        sent += 1;
        if (await exchange(port, octets)) answered += 1;
      }
    };
    await Promise.all(Array.from({ length: atOnce }, worker));
    const health = await send(port, 'GET', '/health/live', { anonymous: true }).catch(
      (error: Error) => error,
    );
    check();
    if (health instanceof Error || health.status !== 200) {
      throw new Error(`no health after the sequences of the seeds ${seed + begun} to ${seed + sent - 1}`, {
        cause: health,
      });
    }
  }
  return { sent, answered };
}
