/**
 * Frames and header sections that a server of HTTP/2 has to refuse, and frames that it has to ignore (RFC 9113). Each is one mistake on a
 * connection of its own, and harmless: it asks for nothing but a GET of the collection. A PING follows it, whose acknowledgement shows that
 * the connection goes on.
 */
import { type Clause, deviates, type Finding, holds, warns } from '../clause.ts';
import type { Connection } from '../connection.ts';
import {
  ack,
  endHeaders,
  endStream,
  errorCodes,
  type Frame,
  firstStatus,
  frame,
  frameTypes,
  type HeaderFields,
  headerBlock,
  http2Preface,
  padded,
  prioritized,
  readFrames,
  setting,
  uint32,
} from '../frames.ts';
import { CannotApply, type Visit } from '../visit.ts';
import { fieldsOverHttp2 } from './http2.ts';

const waitMs = 5000;
const closeWaitMs = 2000;
/** Frames longer than this are not sent, whatever the server takes. */
const frameBytesSentMax = 1_048_576;
const pingOctets = Buffer.from('conduct!');
/** The stream of every request. */
const stream = 1;

type Code = keyof typeof errorCodes;

/** @param frameBytesMax the longest frame that the server takes, from its SETTINGS */
type Make = (fields: HeaderFields, frameBytesMax: number) => Buffer;

const { data, headers, rstStream, settings, pushPromise, ping, goaway, windowUpdate, continuation } =
  frameTypes;

function request(fields: HeaderFields, id = stream): Buffer {
  return frame(headers, endStream | endHeaders, id, headerBlock(fields));
}

/** Frames that end the connection with a GOAWAY of the code. */
const fatal: readonly (readonly [id: string, title: string, section: string, code: Code, make: Make])[] = [
  ['h2-data-idle', 'DATA on an idle stream', '5.1', 'PROTOCOL_ERROR', () => frame(data, 0, stream)],
  ['h2-data-stream-0', 'DATA on stream 0', '6.1', 'PROTOCOL_ERROR', () => frame(data, 0, 0)],
  ['h2-headers-stream-0', 'HEADERS on stream 0', '6.2', 'PROTOCOL_ERROR', (fields) => request(fields, 0)],
  ['h2-stream-even', 'A stream of an even number', '5.1.1', 'PROTOCOL_ERROR', (fields) => request(fields, 2)],
  [
    ...(['h2-padding', 'Padding longer than its frame', '6.2', 'PROTOCOL_ERROR'] as const),
    () => frame(headers, endStream | endHeaders | padded, stream, Buffer.from([9, 0, 0])),
  ],
  [
    ...([
      'h2-headers-interrupted',
      'A frame between HEADERS and CONTINUATION',
      '4.3',
      'PROTOCOL_ERROR',
    ] as const),
    (fields) => frame(headers, endStream, stream, headerBlock(fields)),
  ],
  [
    ...(['h2-continuation-alone', 'CONTINUATION without HEADERS', '6.10', 'PROTOCOL_ERROR'] as const),
    (fields) => frame(continuation, endHeaders, stream, headerBlock(fields)),
  ],
  [
    ...(['h2-push-promise', 'PUSH_PROMISE of a client', '8.4', 'PROTOCOL_ERROR'] as const),
    (fields) => frame(pushPromise, endHeaders, stream, Buffer.concat([uint32(2), headerBlock(fields)])),
  ],
  [
    ...(['h2-reset-idle', 'RST_STREAM of an idle stream', '6.4', 'PROTOCOL_ERROR'] as const),
    () => frame(rstStream, 0, stream, uint32(errorCodes.CANCEL)),
  ],
  ['h2-settings-stream', 'SETTINGS on a stream', '6.5', 'PROTOCOL_ERROR', () => frame(settings, 0, stream)],
  [
    'h2-settings-length',
    'SETTINGS of 5 octets',
    '6.5',
    'FRAME_SIZE_ERROR',
    () => frame(settings, 0, 0, Buffer.alloc(5)),
  ],
  [
    'h2-settings-ack',
    'An acknowledgement of SETTINGS with content',
    '6.5',
    'FRAME_SIZE_ERROR',
    () => frame(settings, ack, 0, setting(3, 1)),
  ],
  [
    'h2-settings-value',
    'ENABLE_PUSH of 2',
    '6.5.2',
    'PROTOCOL_ERROR',
    () => frame(settings, 0, 0, setting(2, 2)),
  ],
  [
    'h2-settings-window',
    'INITIAL_WINDOW_SIZE above 2^31-1',
    '6.5.2',
    'FLOW_CONTROL_ERROR',
    () => frame(settings, 0, 0, setting(4, 2 ** 31)),
  ],
  [
    'h2-ping-stream',
    'PING on a stream',
    '6.7',
    'PROTOCOL_ERROR',
    () => frame(ping, 0, stream, Buffer.alloc(8)),
  ],
  ['h2-ping-length', 'PING of 7 octets', '6.7', 'FRAME_SIZE_ERROR', () => frame(ping, 0, 0, Buffer.alloc(7))],
  [
    'h2-goaway-stream',
    'GOAWAY on a stream',
    '6.8',
    'PROTOCOL_ERROR',
    () => frame(goaway, 0, stream, Buffer.alloc(8)),
  ],
  [
    'h2-window-length',
    'WINDOW_UPDATE of 3 octets',
    '6.9',
    'FRAME_SIZE_ERROR',
    () => frame(windowUpdate, 0, 0, Buffer.alloc(3)),
  ],
  [
    'h2-window-zero',
    'A window that grows by nothing',
    '6.9',
    'PROTOCOL_ERROR',
    () => frame(windowUpdate, 0, 0, uint32(0)),
  ],
  [
    'h2-window-overflow',
    'A window above 2^31-1',
    '6.9.1',
    'FLOW_CONTROL_ERROR',
    () => frame(windowUpdate, 0, 0, uint32(2 ** 31 - 1)),
  ],
  [...(['h2-frame-long', 'A frame longer than MAX_FRAME_SIZE', '4.2', 'FRAME_SIZE_ERROR'] as const), tooLong],
  [
    ...(['h2-block-malformed', 'A field block that is no HPACK', '4.3', 'COMPRESSION_ERROR'] as const),
    () => frame(headers, endStream | endHeaders, stream, Buffer.alloc(8, 0xff)),
  ],
];

/** @throws CannotApply where the server takes longer frames than the suite sends */
function tooLong(fields: HeaderFields, frameBytesMax: number): Buffer {
  if (frameBytesMax > frameBytesSentMax)
    throw new CannotApply(`the server takes frames of ${frameBytesMax} octets`);
  return request([...fields, ['conduct', 'x'.repeat(frameBytesMax)]]);
}

const without = (fields: HeaderFields, name: string): HeaderFields =>
  fields.filter(([each]) => each !== name);

/** Header sections of requests that are malformed: the stream ends with PROTOCOL_ERROR, after an answer of 4xx if there is one (RFC 9113 §8.1.1). Names
 * and values with octets that none has are not among them: many servers drop such a field, which cannot be seen. */
const malformed: readonly (readonly [
  id: string,
  title: string,
  section: string,
  change: (fields: HeaderFields) => HeaderFields,
])[] = [
  ['h2-method-missing', 'without :method', '8.3.1', (fields) => without(fields, ':method')],
  ['h2-scheme-missing', 'without :scheme', '8.3.1', (fields) => without(fields, ':scheme')],
  ['h2-path-missing', 'without :path', '8.3.1', (fields) => without(fields, ':path')],
  ['h2-path-empty', 'with an empty :path', '8.3.1', (fields) => [...without(fields, ':path'), [':path', '']]],
  ['h2-path-twice', 'with two :path', '8.3', (fields) => [[':path', '/'], ...fields]],
  [
    'h2-pseudo-unknown',
    'with an unknown pseudo-header field',
    '8.3',
    (fields) => [[':conduct', '1'], ...fields],
  ],
  [
    'h2-pseudo-late',
    'with a pseudo-header field after another field',
    '8.3',
    (fields) => [['conduct', '1'], ...fields],
  ],
  ['h2-name-case', 'with an upper-case name', '8.2.1', (fields) => [...fields, ['Conduct', '1']]],
  ['h2-connection', 'with Connection', '8.2.2', (fields) => [...fields, ['connection', 'close']]],
  [
    'h2-transfer-encoding',
    'with Transfer-Encoding',
    '8.2.2',
    (fields) => [...fields, ['transfer-encoding', 'chunked']],
  ],
  ['h2-te', 'with a TE other than trailers', '8.2.2', (fields) => [...fields, ['te', 'gzip']]],
  [
    'h2-length-untrue',
    'with a length and no content',
    '8.1.1',
    (fields) => [...fields, ['content-length', '5']],
  ],
];

/** Frames after which the connection goes on. */
const ignored: readonly (readonly [id: string, title: string, section: string, make: Make])[] = [
  ['h2-ping', 'A PING is acknowledged with its octets', '6.7', () => Buffer.alloc(0)],
  [
    'h2-frame-unknown',
    'A frame of an unknown type is ignored',
    '5.5',
    () => frame(0xfa, 0xff, 0, pingOctets),
  ],
  [
    'h2-setting-unknown',
    'An unknown setting is ignored',
    '6.5.2',
    () => frame(settings, 0, 0, setting(0xfafa, 1)),
  ],
];

const rule = { group: 'http2', level: 'must' } as const;

export const http2FrameClauses: readonly Clause[] = [
  ...fatal.map(
    ([id, what, section, code, make]): Clause => ({
      ...{ id, ...rule, section: `RFC 9113 §${section}`, title: `${what} ends the connection with ${code}` },
      judge: async (visit) => {
        const heard = await send(
          visit,
          make,
          (each) => each.isEnded || each.answer !== undefined || each.hasPong,
        );
        if (heard.goaway !== undefined) return refused(heard.goaway, code, heard.isClosed);
        if (heard.answer !== undefined) return deviates(`it is answered ${heard.answer}`);
        if (heard.hasPong) return deviates('the connection goes on');
        return heard.isEnded ? warns('the connection ends without GOAWAY') : deviates(nothing);
      },
    }),
  ),
  ...malformed.map(
    ([id, what, section, change]): Clause => ({
      ...{ id, ...rule, section: `RFC 9113 §${section}` },
      title: `A request ${what} is refused: its stream ends with PROTOCOL_ERROR, or the answer is 4xx`,
      judge: async (visit) => {
        const make: Make = (fields) => request(change(fields));
        const heard = await send(
          visit,
          make,
          (each) => each.isEnded || each.answer !== undefined || each.reset !== undefined,
        );
        if (heard.answer !== undefined)
          return heard.answer >= 400 && heard.answer < 500
            ? holds
            : deviates(`it is answered ${heard.answer}`);
        const code = heard.reset ?? heard.goaway;
        if (code !== undefined) return refused(code, 'PROTOCOL_ERROR', true);
        return heard.isEnded ? warns('the connection ends without a word') : deviates(nothing);
      },
    }),
  ),
  ...ignored.map(
    ([id, title, section, make]): Clause => ({
      ...{ id, ...rule, title, section: `RFC 9113 §${section}` },
      judge: async (visit) => {
        const heard = await send(visit, make, (each) => each.isEnded || each.hasPong);
        if (heard.hasPong) return holds;
        return deviates(
          heard.isEnded
            ? `the connection ends${heard.goaway === undefined ? '' : ` with ${nameOf(heard.goaway)}`}`
            : nothing,
        );
      },
    }),
  ),
];

const nothing = `nothing came within ${waitMs} ms`;

function refused(code: number, wanted: Code, isClosed: boolean): Finding {
  if (code !== errorCodes[wanted]) return warns(`it is refused with ${nameOf(code)}`);
  return isClosed ? holds : warns(`the connection stays open for ${closeWaitMs} ms after GOAWAY`);
}

function nameOf(code: number): string {
  return Object.entries(errorCodes).find(([, each]) => each === code)?.[0] ?? `the error ${code}`;
}

type Heard = {
  /** The code of GOAWAY. */
  readonly goaway: number | undefined;
  /** The code with which the stream of the request ended. */
  readonly reset: number | undefined;
  /** The status on the stream of the request; 0 where it cannot be read. */
  readonly answer: number | undefined;
  /** True if the PING was acknowledged with its octets. */
  readonly hasPong: boolean;
  /** True if there was a GOAWAY, or the end of the connection. */
  readonly isEnded: boolean;
  readonly isClosed: boolean;
};

/** Sends the frames and a PING on a new connection, and listens until enough was heard. */
async function send(visit: Visit, make: Make, isEnough: (heard: Heard) => boolean): Promise<Heard> {
  const connection = await visit.open('h2');
  const first = await begin(visit, connection);
  const octets = make(fieldsOverHttp2(visit), frameBytesMaxOf(first));
  connection.write(Buffer.concat([frame(settings, ack, 0), octets, frame(ping, 0, 0, pingOctets)]));
  const hear = (come: Buffer): Heard => heardIn(readFrames(come).frames);
  const come = await connection.peek(waitMs, (each) => isEnough(hear(each)));
  const heard = hear(come);
  const isClosed = await connection.ends(heard.goaway === undefined ? 0 : closeWaitMs);
  const { frames } = readFrames(come);
  visit.note(framesText(readFrames(octets).frames), {
    none: `${framesText(frames)}${isClosed ? '\nend of the connection' : ''}`,
  });
  return { ...heard, isClosed, isEnded: heard.isEnded || isClosed };
}

/** @returns the octets that came, with the SETTINGS that a server sends first. @throws CannotApply where none come */
async function begin({ target }: Visit, connection: Connection): Promise<readonly Frame[]> {
  connection.write(Buffer.concat([Buffer.from(http2Preface), frame(settings, 0, 0)]));
  const hasSettings = (octets: Buffer): boolean => {
    // A server of HTTP/1.1 answers in words.
    if (octets.toString('latin1', 0, 5) === 'HTTP/') return true;
    return readFrames(octets).frames.some(({ type }) => type === settings);
  };
  const octets = await connection.peek(waitMs, hasSettings);
  const [first] = octets.toString('latin1', 0, 5) === 'HTTP/' ? [] : readFrames(octets).frames;
  if (first?.type !== settings)
    throw new CannotApply(
      `the server does not speak HTTP/2${target.address.scheme === 'http' ? ' in clear' : ''}`,
    );
  return readFrames(octets).frames;
}

/** SETTINGS_MAX_FRAME_SIZE, whose identifier is 5 (RFC 9113 §6.5.2). */
function frameBytesMaxOf(frames: readonly Frame[]): number {
  const { payload } = frames[0] ?? { payload: Buffer.alloc(0) };
  let bytes = 16_384;
  for (let at = 0; at + 6 <= payload.length; at += 6)
    if (payload.readUInt16BE(at) === 5) bytes = payload.readUInt32BE(at + 2);
  return bytes;
}

function heardIn(frames: readonly Frame[]): Heard {
  const find = (type: number, id: number): Frame | undefined =>
    frames.find((each) => each.type === type && each.stream === id);
  const ended = find(goaway, 0);
  const answered = find(headers, stream);
  const pong = frames.some(
    ({ type, flags, payload }) => type === ping && flags === ack && payload.equals(pingOctets),
  );
  return {
    goaway: ended?.payload.readUInt32BE(4),
    reset: find(rstStream, stream)?.payload.readUInt32BE(0),
    answer: answered === undefined ? undefined : (firstStatus(blockOf(answered)) ?? 0),
    hasPong: pong,
    isEnded: ended !== undefined,
    isClosed: false,
  };
}

/** Without the length of padding and without a priority (RFC 9113 §6.2). */
function blockOf({ flags, payload }: Frame): Buffer {
  return payload.subarray(((flags & padded) === 0 ? 0 : 1) + ((flags & prioritized) === 0 ? 0 : 5));
}

function framesText(frames: readonly Frame[]): string {
  const names = Object.entries(frameTypes);
  return frames
    .map(({ type, flags, stream: id, payload }) => {
      const name = names.find(([, each]) => each === type)?.[0] ?? `type ${type}`;
      return `${name}, flags ${flags}, stream ${id}, ${payload.length} octets: ${payload.toString('hex', 0, 32)}`;
    })
    .join('\n');
}
