/**
 * HTTP/2 over sockets that somebody else accepted: a server of node:http2 that never listens and is given its
 * connections by `emit('connection', socket)`, after ALPN, a look at the preface, or an upgrade. The `stream` event is used,
 * not the objects that imitate node:http: they cost a third more a request and hide the order of fields.
 *
 * Bounds that node:http2 has no setting for here are its own: the program's are those of limits.ts.
 */
import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import { type Arrivals, ignoreError, onArrival, ownEmitter } from '../../observe/own-emitter.ts';
import { type Connection, connectionOf } from '../connection.ts';
import type { Context } from '../context.ts';
import {
  http2HeaderListFactor,
  http2InvalidFramesMax,
  http2MemoryMebibytesMax,
  http2PingsMax,
  http2RejectedStreamsMax,
  http2ResetsBurstSeconds,
  http2SettingsMax,
  type ServerLimits,
} from '../limits.ts';
import { Http2Connection } from './http2-connection.ts';
import { takeStream } from './take-stream.ts';

/** Arguments of `stream`. */
type Arrived = [stream: ServerHttp2Stream, headers: object, flags: number, raw: readonly string[]];

export function createHttp2(context: Context): Http2Server {
  const { limits } = context;
  const server = ownEmitter(createServer(optionsOf(limits)), ignoreError);
  let accepted: Connection | undefined;
  // Called before node's own listener, which makes the session of the socket in the same turn.
  const first: Arrivals<[Socket]> = { on: (event, listener) => server.prependListener(event, listener) };
  onArrival(first, 'connection', ignoreError, (socket) => {
    accepted = connectionOf(socket, context.monotonic);
  });
  onArrival(server, 'session', ignoreError, (session: ServerHttp2Session) => {
    if (accepted === undefined) return;
    const connection = new Http2Connection(context, accepted, session);
    accepted.multiplexed = connection;
    accepted = undefined;
    session.setLocalWindowSize(limits.http2ConnectionWindowBytesMax);
    // A stream may have ended with an error in the packet that it came in; its session reports what matters.
    onArrival(session, 'stream', ignoreError, (...[stream, , , raw]: Arrived) =>
      takeStream(context, connection, stream, raw),
    );
  });
  return server;
}

function optionsOf(limits: ServerLimits) {
  const resetsPerSecond = limits.http2ResetsPerSecondMax;
  const headerListBytes = limits.fieldsBytesMax * http2HeaderListFactor;
  return {
    settings: {
      enableConnectProtocol: true,
      maxConcurrentStreams: limits.http2StreamsMax,
      initialWindowSize: limits.http2StreamWindowBytesMax,
      maxHeaderListSize: headerListBytes,
    },
    // As many as fit in the octets: what they are bounded by is the same over HTTP/1.1.
    maxHeaderListPairs: headerListBytes,
    streamResetRate: resetsPerSecond,
    streamResetBurst: resetsPerSecond * http2ResetsBurstSeconds,
    maxSettings: http2SettingsMax,
    maxOutstandingPings: http2PingsMax,
    maxSessionInvalidFrames: http2InvalidFramesMax,
    maxSessionRejectedStreams: http2RejectedStreamsMax,
    maxSessionMemory: http2MemoryMebibytesMax,
    // Else values in white space were dropped, an Origin or If-Match among them, and nobody knew: take-stream.ts refuses them.
    strictFieldWhitespaceValidation: false,
    // A forwarded answer may repeat a field that comes once; that is between its server and its client.
    strictSingleValueFields: false,
  };
}
