/**
 * HTTP/2 on sockets that another server accepted: a server of node:http2 that never listens and gets its connections by
 * `emit('connection', socket)`, after ALPN, a look at the preface, or an upgrade. The `stream` event is used, because
 * the objects that imitate node:http cost a third more a request and hide the order of fields. Its limits are in
 * server/limits.ts where node:http2 has no setting.
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

type Arrived = [stream: ServerHttp2Stream, headers: object, flags: number, raw: readonly string[]];

export function createHttp2(context: Context): Http2Server {
  const { limits } = context;
  const server = ownEmitter(createServer(optionsOf(limits)), ignoreError);
  let accepted: Connection | undefined;
  // Called before node's own listener, which creates the session of the socket in the same turn.
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
    // A stream may have ended with an error in the packet that opened it; its session reports what matters.
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
    // No limit besides the octets, as over HTTP/1.1.
    maxHeaderListPairs: headerListBytes,
    streamResetRate: resetsPerSecond,
    streamResetBurst: resetsPerSecond * http2ResetsBurstSeconds,
    maxSettings: http2SettingsMax,
    maxOutstandingPings: http2PingsMax,
    maxSessionInvalidFrames: http2InvalidFramesMax,
    maxSessionRejectedStreams: http2RejectedStreamsMax,
    maxSessionMemory: http2MemoryMebibytesMax,
    // Otherwise node drops values with surrounding white space silently, an Origin or If-Match among them;
    // take-stream.ts refuses them.
    strictFieldWhitespaceValidation: false,
    // A forwarded answer may repeat a singleton field; that is between its server and its client.
    strictSingleValueFields: false,
  };
}
