/** Mutants of the clean server over HTTP/2: functions that answer in another way, and servers between that change frames. */
import { connect, createServer, type Socket } from 'node:net';
import {
  ack,
  endHeaders,
  endStream,
  type Frame,
  frame,
  frameTypes,
  headerBlock,
  http2Preface,
  readFrames,
} from '../../../conduct/frames.ts';
import { cleanToken, type Notes } from '../../conduct-suite/clean-server.ts';
import { type Ending, listen } from '../../harness/listening.ts';

/** Clauses whose server answers HTTP/2 in another way. */
export const http2Mutants: Readonly<Record<string, (notes: Notes) => Notes>> = {
  'h2-same-answer': (notes) => (asked) => ({ ...notes(asked), json: { other: true } }),
  'h2-head': (notes) => {
    let failures = 0;
    return (asked) => {
      const answer = notes(asked);
      if (answer.status === 404) failures += 1;
      return failures > 0 ? { status: 500 } : answer;
    };
  },
  'h2-at-once': (notes) => {
    let before: Parameters<Notes>[0] | undefined;
    return (asked) => {
      const answer = notes(before ?? asked);
      before = asked;
      return answer;
    };
  },
};

/** Frames as they are passed on; `end` ends the connection. */
type Change = (given: Frame) => Buffer | 'end';

export type FrameMutant = {
  /** Of frames that the client sends. */
  readonly sent?: Change;
  /** Of frames that the server answers. */
  readonly answered?: Change;
};

const same: Change = ({ type, flags, stream, payload }) => frame(type, flags, stream, payload);
const nothing = Buffer.alloc(0);

/** `connection: close` as a literal field that no table has (RFC 7541 §6.2.2). */
const connectionField = headerBlock([['connection', 'close']]);

/** Ignores everything but sound PINGs, and SETTINGS of which nothing is wrong. */
const ignores: FrameMutant = {
  sent: (given) => {
    const { type, flags, stream, payload } = given;
    const isPing = type === frameTypes.ping && stream === 0 && payload.length === 8;
    const isSettings = type === frameTypes.settings && stream === 0 && payload.length === 0;
    return isPing || isSettings ? frame(type, flags & ack, 0, payload) : nothing;
  },
};

const soundRequest = headerBlock([
  [':method', 'GET'],
  [':scheme', 'http'],
  [':authority', 'clean'],
  [':path', '/notes'],
  ['authorization', `Bearer ${cleanToken}`],
]);

/** Takes a malformed header section for a sound one. */
const repairs: FrameMutant = {
  sent: (given) =>
    given.type === frameTypes.headers
      ? frame(given.type, endStream | endHeaders, given.stream, soundRequest)
      : same(given),
};

const endsAt = (isStrange: (given: Frame) => boolean): FrameMutant => ({
  sent: (given) => (isStrange(given) ? 'end' : same(given)),
});

const all = (ids: readonly string[], mutant: FrameMutant): Readonly<Record<string, FrameMutant>> =>
  Object.fromEntries(ids.map((id) => [id, mutant]));

/** Clauses whose server reads or writes other frames. */
export const frameMutants: Readonly<Record<string, FrameMutant>> = {
  'h2-connection-fields': {
    answered: (given) =>
      given.type === frameTypes.headers
        ? same({ ...given, payload: Buffer.concat([given.payload, connectionField]) })
        : same(given),
  },
  'h2-ping': { sent: (given) => (given.type === frameTypes.ping ? nothing : same(given)) },
  'h2-frame-unknown': endsAt(({ type }) => type > frameTypes.continuation),
  'h2-setting-unknown': endsAt(({ type, payload }) => type === frameTypes.settings && payload.length > 0),
  ...all(
    [
      ...['h2-data-idle', 'h2-data-stream-0', 'h2-headers-stream-0', 'h2-stream-even', 'h2-padding'],
      ...['h2-headers-interrupted', 'h2-continuation-alone', 'h2-push-promise', 'h2-reset-idle'],
      ...['h2-settings-stream', 'h2-settings-length', 'h2-settings-ack', 'h2-settings-value'],
      ...['h2-settings-window', 'h2-ping-stream', 'h2-ping-length', 'h2-goaway-stream', 'h2-window-length'],
      ...['h2-window-zero', 'h2-window-overflow', 'h2-frame-long', 'h2-block-malformed'],
    ],
    ignores,
  ),
  ...all(
    [
      ...['h2-method-missing', 'h2-scheme-missing', 'h2-path-missing', 'h2-path-empty', 'h2-path-twice'],
      ...['h2-pseudo-unknown', 'h2-pseudo-late', 'h2-name-case'],
      ...['h2-connection', 'h2-transfer-encoding', 'h2-te', 'h2-length-untrue'],
    ],
    repairs,
  ),
};

/** Changes frames of HTTP/2, and passes other connections on. @returns the port of the server that does it */
export async function standBetweenFrames(
  port: number,
  { sent = same, answered = same }: FrameMutant,
  context: Ending,
): Promise<number> {
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    const end = (): void => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) socket.on('error', end).on('close', end);
    client.once('data', (first: Buffer) => {
      if (!first.toString('latin1').startsWith(http2Preface)) {
        upstream.write(first);
        client.pipe(upstream).pipe(client);
        return;
      }
      upstream.write(http2Preface);
      const take = changing(sent, upstream, end);
      take(first.subarray(http2Preface.length));
      client.on('data', take);
      upstream.on('data', changing(answered, client, end));
    });
  });
  return (await listen(server, context)).port;
}

function changing(change: Change, to: Socket, end: () => void): (chunk: Buffer) => void {
  let waiting: Buffer = nothing;
  return (chunk) => {
    const { frames, rest } = readFrames(Buffer.concat([waiting, chunk]));
    waiting = rest;
    for (const each of frames) {
      const changed = change(each);
      if (changed === 'end') return end();
      if (to.writable) to.write(changed);
    }
  };
}
