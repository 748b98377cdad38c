/**
 * From HTTP/1.1 to HTTP/2 on one connection (§4.13; RFC 7540 §3.2). The socket itself is handed to node:http2, which reads what lies in it first:
 * so the octets in front of it are rewritten, and nothing stands between the two afterwards. Modes:
 *
 *   answered   101 is written; what the client sends is held until its preface and first frame are whole.
 *   over       preface, merged SETTINGS, the request as stream 1 and what came after lie in the socket, and HTTP/2 has it.
 *   ended      something else came, or nothing in time: the connection is cut, because no protocol is left to answer in.
 */
import type { Socket } from 'node:net';
import type { Observe } from '../../observe/observation.ts';
import { readFirstFrames, writeFirstFrames } from './first-frames.ts';
import { encodeHeaderBlock } from './header-block.ts';
import type { H2cRequest } from './judge-upgrade.ts';
import { mergeSettings } from './merge-settings.ts';

export type H2cHandOver = {
  readonly socket: Socket;
  /** What came behind the request with it. */
  readonly head: Uint8Array;
  readonly request: H2cRequest;
  readonly content: Uint8Array;
  /** As `judgeH2cUpgrade` read them. */
  readonly settings: Uint8Array;
  readonly authority: string;
  readonly http2: { emit(event: 'connection', socket: Socket): boolean };
  /** For preface and first frame. */
  readonly timeoutMs: number;
  readonly observe: Observe;
};

const switching = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n';
/** A preface and the longest first frame; what comes behind them is at most one read of the socket. */
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
  const timer = setTimeout(() => cut('no connection preface came in time'), timeoutMs).unref();
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
  // What a socket holds, a session reads in its first turn.
  socket.pause();
  socket.unshift(rest.length === 0 ? first : Buffer.concat([first, rest]));
  call.http2.emit('connection', socket);
}
