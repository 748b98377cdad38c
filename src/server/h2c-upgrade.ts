/**
 * Switches a connection from HTTP/1.1 to HTTP/2 (§4.13; RFC 7540 §3.2). node:http2 gets the socket itself and reads
 * what lies in it first, so the first octets are rewritten and nothing sits between the two afterwards. Modes:
 *
 * - answered: 101 is written; the client's octets are held until its preface and first frame are complete.
 * - over: preface, merged SETTINGS, the request as stream 1 and later octets are in the socket, and HTTP/2 has it.
 * - ended: something else arrived, or nothing in time: the connection is cut, with no protocol left to respond in.
 */
import type { Socket } from 'node:net';
import { tokensOf, valuesOf } from '../http/syntax/field-value.ts';
import { isHost } from '../http/syntax/uri.ts';
import type { Observe } from '../observe/observation.ts';

type H2cHandOver = {
  readonly socket: Socket;
  /** Octets after the request in the same read. */
  readonly head: Uint8Array;
  readonly request: H2cRequest;
  readonly content: Uint8Array;
  readonly settings: Uint8Array;
  readonly authority: string;
  readonly http2: { emit(event: 'connection', socket: Socket): boolean };
  readonly timeoutMs: number;
  readonly observe: Observe;
};

const switching = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n';
/** A preface and the longest first frame, with at most one read of the socket behind them. */
const heldBytesMax = 128 * 1024;

export function acceptH2c(call: H2cHandOver): void {
  const { socket, timeoutMs } = call;
  let held = Buffer.from(call.head);
  const leave = () => {
    clearTimeout(timer);
    socket.off('data', onData);
    socket.off('end', onEnd);
    socket.off('close', leave);
  };
  const cut = (why: string) => {
    leave();
    call.observe({ kind: 'http2-cut', peer: socket.remoteAddress ?? '', why });
    socket.destroy();
  };
  const onData = (chunk: Uint8Array) => {
    if (chunk.length > 0) held = Buffer.concat([held, chunk]);
    const first = readFirstFrames(held);
    if (first.kind === 'wrong') cut(first.why);
    else if (first.kind === 'read') {
      leave();
      handOver(call, first.settings, first.rest);
    } else if (held.length > heldBytesMax) cut('the preface is too long');
  };
  const onEnd = () => cut('the client ended before its preface');
  const timer = setTimeout(() => cut('the connection preface did not arrive in time'), timeoutMs).unref();
  socket.on('close', leave);
  socket.on('end', onEnd);
  socket.write(switching, 'latin1');
  socket.on('data', onData);
  onData(new Uint8Array(0));
}

function handOver(call: H2cHandOver, settings: Uint8Array, rest: Uint8Array): void {
  const { socket } = call;
  const block = encodeHeaderBlock(call.request, call.authority);
  const first = writeFirstFrames(mergeSettings(call.settings, settings), block, call.content);
  // A session reads what its socket holds in its first turn.
  socket.pause();
  socket.unshift(rest.length === 0 ? first : Buffer.concat([first, rest]));
  call.http2.emit('connection', socket);
}

/**
 * The client's connection preface (RFC 9113 §3.4). The code below reads it and the client's first frame, and writes
 * those that the HTTP/2 server is to receive instead, with the upgraded request as stream 1.
 */
const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
const frameHeadBytes = 9;
const framePayloadBytesMax = 16_384;
const settingBytes = 6;

const frameType = { data: 0x0, headers: 0x1, settings: 0x4, continuation: 0x9 } as const;
const flag = { none: 0x0, endStream: 0x1, ack: 0x1, endHeaders: 0x4 } as const;

type FirstFrames =
  | { readonly kind: 'more' }
  | { readonly kind: 'wrong'; readonly why: string }
  /** `settings`: payload of the first frame; `rest`: the octets after it. */
  | { readonly kind: 'read'; readonly settings: Uint8Array; readonly rest: Uint8Array };

export function readFirstFrames(octets: Uint8Array): FirstFrames {
  const known = Math.min(octets.length, preface.length);
  for (let index = 0; index < known; index += 1) {
    if (octets[index] !== preface[index])
      return { kind: 'wrong', why: 'the connection preface did not arrive' };
  }
  if (octets.length < preface.length + frameHeadBytes) return { kind: 'more' };
  const head = octets.subarray(preface.length, preface.length + frameHeadBytes);
  const length = ((head[0] ?? 0) << 16) | ((head[1] ?? 0) << 8) | (head[2] ?? 0);
  const onConnection = head.subarray(5).every((octet, index) => (index === 0 ? octet & 0x7f : octet) === 0);
  const isSettings = head[3] === frameType.settings && ((head[4] ?? 0) & flag.ack) === 0 && onConnection;
  if (!isSettings || length % settingBytes !== 0 || length > framePayloadBytesMax) {
    return { kind: 'wrong', why: 'the connection preface has no SETTINGS frame' };
  }
  const start = preface.length + frameHeadBytes;
  if (octets.length < start + length) return { kind: 'more' };
  return {
    kind: 'read',
    settings: octets.subarray(start, start + length),
    rest: octets.subarray(start + length),
  };
}

/** Preface, one SETTINGS, and the request as stream 1 with its end. */
export function writeFirstFrames(settings: Uint8Array, block: Uint8Array, content: Uint8Array): Buffer {
  const parts: Uint8Array[] = [preface, frame(frameType.settings, flag.none, 0, settings)];
  const blocks = split(block);
  blocks.forEach((piece, index) => {
    const last = index === blocks.length - 1 ? flag.endHeaders : flag.none;
    const end = index === 0 && content.length === 0 ? flag.endStream : flag.none;
    parts.push(frame(index === 0 ? frameType.headers : frameType.continuation, last | end, 1, piece));
  });
  if (content.length > 0) {
    const pieces = split(content);
    pieces.forEach((piece, index) => {
      parts.push(frame(frameType.data, index === pieces.length - 1 ? flag.endStream : flag.none, 1, piece));
    });
  }
  return Buffer.concat(parts);
}

function split(octets: Uint8Array): readonly Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < octets.length; at += framePayloadBytesMax) {
    pieces.push(octets.subarray(at, at + framePayloadBytesMax));
  }
  return pieces;
}

function frame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const octets = Buffer.allocUnsafe(frameHeadBytes + payload.length);
  octets.writeUIntBE(payload.length, 0, 3);
  octets[3] = type;
  octets[4] = flags;
  octets.writeUInt32BE(stream, 5);
  octets.set(payload, frameHeadBytes);
  return octets;
}

const dropped: ReadonlySet<string> = new Set([
  'connection',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Encodes the HTTP/1.1 request as a header block of HTTP/2 (RFC 7541 §6.2.2): every field a literal, without indexing
 * and without Huffman coding. This leaves the dynamic table in the state that the client's encoder expects. Fields of
 * the connection are left out (RFC 9113 §8.2.2); `Host` becomes `:authority`.
 */
export function encodeHeaderBlock(request: H2cRequest, authority: string): Uint8Array {
  const { method, target, rawFields } = request;
  const named = new Set(tokensOf(rawFields, 'connection'));
  const parts: Buffer[] = [];
  writeLiteral(parts, ':method', method);
  writeLiteral(parts, ':scheme', 'http');
  writeLiteral(parts, ':authority', authority);
  writeLiteral(parts, ':path', target);
  for (let index = 0; index + 1 < rawFields.length; index += 2) {
    const name = (rawFields[index] ?? '').toLowerCase();
    if (!dropped.has(name) && !named.has(name)) writeLiteral(parts, name, rawFields[index + 1] ?? '');
  }
  return Buffer.concat(parts);
}

function writeLiteral(parts: Buffer[], name: string, value: string): void {
  parts.push(Buffer.from([0]));
  writeString(parts, name);
  writeString(parts, value);
}

/** RFC 7541 §5.2, with H = 0. node:http gives octets as latin1. */
function writeString(parts: Buffer[], text: string): void {
  const octets = Buffer.from(text, 'latin1');
  parts.push(Buffer.from(encodeInteger(octets.length)), octets);
}

function encodeInteger(value: number): readonly number[] {
  const prefixMax = 127;
  if (value < prefixMax) return [value];
  const octets = [prefixMax];
  let rest = value - prefixMax;
  while (rest >= 128) {
    octets.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  octets.push(rest);
  return octets;
}

/** @param first and `later`: payloads with a length that is a multiple of six */
export function mergeSettings(first: Uint8Array, later: Uint8Array): Uint8Array {
  const values = new Map<number, Uint8Array>();
  for (const payload of [first, later]) {
    for (let at = 0; at + settingBytes <= payload.length; at += settingBytes) {
      const id = ((payload[at] ?? 0) << 8) | (payload[at + 1] ?? 0);
      // Settings apply in the order of their last occurrence (RFC 9113 §6.5.3).
      values.delete(id);
      values.set(id, payload.subarray(at, at + settingBytes));
    }
  }
  const merged = new Uint8Array(values.size * settingBytes);
  let at = 0;
  for (const setting of values.values()) {
    merged.set(setting, at);
    at += settingBytes;
  }
  return merged;
}

// Decides whether a request for h2c can become stream 1 of an HTTP/2 connection (§4.13; RFC 7540 §3.2, which RFC 9113
// §3.1 obsoletes without forbidding it). A response over HTTP/1.1 is always correct, so unusual requests are declined:
// long content or of unknown length, a client that waits for 100 (Continue), a target that is not a path, a Host that
// HTTP/2 cannot carry, and more fields than HTTP/2 accepts.
//

type H2cRequest = {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  readonly rawFields: readonly string[];
};

type H2cBounds = { readonly contentBytesMax: number; readonly fieldsBytesMax: number };

type H2cJudgement =
  /** `settings`: payload of the SETTINGS frame in HTTP2-Settings; `authority`: the Host. */
  | { readonly ok: true; readonly settings: Uint8Array; readonly authority: string }
  | { readonly ok: false; readonly why: string };

/** As many entries as node:http2 accepts in a frame. */
const settingsMax = 32;
/** Below the 128 that node:http2 accepts by default, with room for pseudo-header fields. */
const fieldPairsMax = 100;
/** Octets that HTTP/2 adds to the length of each field (RFC 9113 §6.5.2). */
const fieldOverheadBytes = 32;
const base64url = /^[A-Za-z0-9_-]*$/;

export function judgeH2cUpgrade(request: H2cRequest, bounds: H2cBounds): H2cJudgement {
  const { rawFields } = request;
  const connection = tokensOf(rawFields, 'connection');
  if (request.version !== '1.1') return no('the version is not 1.1');
  if (!tokensOf(rawFields, 'upgrade').includes('h2c')) return no('Upgrade does not name h2c');
  if (!connection.includes('upgrade') || !connection.includes('http2-settings')) {
    return no('Connection does not name both Upgrade and HTTP2-Settings');
  }
  const settings = readSettings(valuesOf(rawFields, 'http2-settings'));
  if (settings === undefined) return no('HTTP2-Settings must be one valid list of settings');
  if (request.method === 'CONNECT') return no('CONNECT is handled separately');
  if (!request.target.startsWith('/') && request.target !== '*') return no('the target is not a path');
  const hosts = valuesOf(rawFields, 'host');
  const [authority = ''] = hosts;
  if (hosts.length !== 1 || authority === '' || !isHost(authority)) return no('Host must be one valid host');
  if (valuesOf(rawFields, 'transfer-encoding').length > 0) return no('the length of the content is unknown');
  if (valuesOf(rawFields, 'expect').length > 0) return no('the client waits for 100 (Continue)');
  const lengths = valuesOf(rawFields, 'content-length');
  if (lengths.length > 1 || Number(lengths[0] ?? 0) > bounds.contentBytesMax)
    return no('the content is too long');
  if (rawFields.length > 2 * fieldPairsMax || listBytes(request) > bounds.fieldsBytesMax) {
    return no('there are too many header fields');
  }
  return { ok: true, settings, authority };
}

function no(why: string): H2cJudgement {
  return { ok: false, why };
}

/** RFC 7540 §3.2.1: one field, base64url without padding, complete settings. */
function readSettings(values: readonly string[]): Uint8Array | undefined {
  const [value] = values;
  if (values.length !== 1 || value === undefined || !base64url.test(value) || value.length % 4 === 1)
    return undefined;
  const payload = Buffer.from(value, 'base64url');
  return payload.length % settingBytes === 0 && payload.length <= settingsMax * settingBytes
    ? payload
    : undefined;
}

function listBytes({ method, target, rawFields }: H2cRequest): number {
  let bytes = method.length + target.length + 4 * fieldOverheadBytes;
  for (let index = 0; index < rawFields.length; index += 1) bytes += rawFields[index]?.length ?? 0;
  return bytes + (rawFields.length / 2) * fieldOverheadBytes;
}
