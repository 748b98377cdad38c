/**
 * A request on a stream of a multiplexed connection and the answer it is owed: the `Request` that the handler sees.
 */
import type { ConverseOptions } from '../../connections/websocket/converse.ts';
import type { Response } from '../../http/message.ts';
import { type RequestFields, readRequestFields } from '../../http/request-fields.ts';
import type { Connection } from '../connection.ts';
import type { ContentSource } from '../content-reading.ts';
import type { Context, OpenSocket } from '../context.ts';
import { RequestUnderWay } from '../request-under-way.ts';
import { cancelled, type MultiplexedStream } from './multiplexed.ts';
import type { Head } from './read-head.ts';
import { sendOnStream } from './send-on-stream.ts';
import type { StreamRequest } from './stream-request.ts';

export class StreamExchange extends RequestUnderWay implements StreamRequest {
  readonly method: string;
  /** Absolute where the request turned out to be for another server. */
  target: string;
  readonly version: string;
  readonly fields: RequestFields;
  readonly rawFields: readonly string[];
  readonly protocol: string | undefined;
  readonly stream: MultiplexedStream;
  /** Makes the stream a WebSocket; undefined where it was not asked for. */
  converse: ((options: ConverseOptions) => OpenSocket) | undefined;
  /** The stream is a WebSocket, a tunnel or a stream of events: silence is not a stall. */
  held = false;
  /** When the client last took something of the answer, on the monotonic clock. */
  progressMs: number;

  constructor(context: Context, connection: Connection, stream: MultiplexedStream, head: Head) {
    super(context, connection);
    const { rawFields, protocol } = head;
    const fields = readRequestFields(rawFields);
    // An extended CONNECT is handed on as the GET that an Upgrade would have been (RFC 8441 §5.1).
    this.method = protocol === undefined ? head.method : 'GET';
    this.target = head.target;
    this.version = '2.0';
    this.rawFields = rawFields;
    this.fields = fields;
    this.protocol = protocol;
    this.stream = stream;
    this.progressMs = this.startedMs;
    if (stream.endAfterHeaders || protocol !== undefined || head.method === 'CONNECT') return;
    // Content of a length that nobody announced, which HTTP/1.1 says with a transfer coding and HTTP/2 with nothing.
    if (fields.contentLength === undefined) fields.transferEncoding = 'chunked';
    this.awaitsContinue = fields.expect !== undefined && fields.expect.toLowerCase() === '100-continue';
  }

  /** Answered: what is left is for the client to do, to take the answer or to end its content. */
  get waitsForClient(): boolean {
    return this.answered && !this.held;
  }

  /** The client takes nothing of the answer since `progressMs`. */
  get stalls(): boolean {
    return this.waitsForClient && !this.stream.writableFinished;
  }

  get announcesContent(): boolean {
    return this.fields.transferEncoding !== undefined || this.announcedBytes > 0;
  }

  protected get contentSource(): ContentSource | undefined {
    return this.stream.destroyed || this.stream.aborted ? undefined : this.stream;
  }

  protected writeContinue(): void {
    if (!this.stream.closed && !this.stream.destroyed) this.stream.additionalHeaders({ ':status': 100 });
  }

  get sentStatus(): number | undefined {
    return this.stream.headersSent ? this.#status : undefined;
  }

  get sink(): MultiplexedStream {
    return this.stream;
  }

  #status = 0;

  /** Sends the final header section, unless the client has gone. */
  respond(status: number, fields: string[], endStream: boolean): void {
    this.#status = status;
    this.progressMs = this.context.monotonic();
    this.stream.respond([':status', String(status), ...fields], endStream ? { endStream } : {});
  }

  onClientEnded(): void {
    if (this.held) this.cut();
    else if (this.reading !== undefined) this.failContent('content_malformed');
  }

  send(response: Response): void {
    sendOnStream(this, response);
  }

  cut(): void {
    this.stream.close(cancelled);
  }

  override holdOpen(onLeft: () => void): void {
    super.holdOpen(onLeft);
    this.held = true;
  }

  /** What was written before is an answer like others: a client that takes nothing of it is cut. */
  override letGo(onLeft: () => void): void {
    super.letGo(onLeft);
    this.held = false;
    this.progressMs = this.context.monotonic();
  }

  /** Other streams go on; the connection ends when the server has told so and none is left. */
  endForGood(): void {
    this.stream.end();
  }
}
