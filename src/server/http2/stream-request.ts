/** A request on a multiplexed stream (RFC 9113 §8.1), as those see it who write its answer. */
import type { ConverseOptions } from '../../connections/websocket/converse.ts';
import type { OpenSocket } from '../context.ts';
import type { RequestUnderWay } from '../request-under-way.ts';
import type { MultiplexedStream } from './multiplexed.ts';

export type StreamRequest = RequestUnderWay & {
  readonly stream: MultiplexedStream;
  /** Makes the stream a WebSocket; undefined where it was not asked for. */
  readonly converse: ((options: ConverseOptions) => OpenSocket) | undefined;
  /** The stream is a WebSocket, a tunnel or a stream of events: silence is not a stall. */
  held: boolean;
  /** When the client last took something of the answer, on the monotonic clock. */
  progressMs: number;
  /** Sends the final header section. Throws where the stream is closed. */
  respond(status: number, fields: string[], endStream: boolean): void;
};
