/** One request on a stream of a multiplexed connection and its response: the `Request` of the handler. */

import type { Response } from '../../http/message.ts';
import { type RequestFields, readRequestFields } from '../../http/request-fields.ts';
import type { MemoryLease } from '../../memory/budget.ts';
import type { ConverseOptions } from '../../realtime/websocket/converse.ts';
import type { Connection } from '../connection.ts';
import type { ContentSource } from '../content-reading.ts';
import type { Context, OpenSocket } from '../context.ts';
import { RequestUnderWay } from '../request-under-way.ts';
import { cancelled, type MultiplexedStream } from './multiplexed.ts';
import type { Head } from './read-head.ts';
import { type StreamRequest, sendOnStream } from './send-on-stream.ts';

export class StreamExchange extends RequestUnderWay implements StreamRequest {
  readonly method: string;
  /** Absolute if the request is for another server. */
  target: string;
  readonly version: string;
  readonly fields: RequestFields;
  readonly rawFields: readonly string[];
  readonly protocol: string | undefined;
  readonly stream: MultiplexedStream;
  converse: ((options: ConverseOptions) => OpenSocket) | undefined;
  held = false;
  onContentOver: (() => void) | undefined;
  progressMs: number;
  answerLease: MemoryLease | undefined;

  constructor(context: Context, connection: Connection, stream: MultiplexedStream, head: Head) {
    super(context, connection);
    const { rawFields, protocol } = head;
    const fields = readRequestFields(rawFields);
    // An extended CONNECT is passed on as the GET of the equivalent Upgrade (RFC 8441 §5.1).
    this.method = protocol === undefined ? head.method : 'GET';
    this.target = head.target;
    this.version = '2.0';
    this.rawFields = rawFields;
    this.fields = fields;
    this.protocol = protocol;
    this.stream = stream;
    this.progressMs = this.startedMs;
    if (stream.endAfterHeaders || protocol !== undefined || head.method === 'CONNECT') return;
    // Content of unknown length, which HTTP/1.1 marks with a transfer coding and HTTP/2 not at all.
    if (fields.contentLength === undefined) fields.transferEncoding = 'chunked';
    this.awaitsContinue = fields.expect !== undefined && fields.expect.toLowerCase() === '100-continue';
  }

  /** The response is sent: the client has to receive it or to end its content. */
  get waitsForClient(): boolean {
    return this.answered && !this.held;
  }

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

  get isGone(): boolean {
    return this.stream.closed || this.stream.destroyed;
  }

  get sink(): MultiplexedStream {
    return this.stream;
  }

  #status = 0;

  /** Sends the final header section, unless the client has left. */
  respond(status: number, fields: string[], endStream: boolean): void {
    this.#status = status;
    this.progressMs = this.context.monotonic();
    this.stream.respond([':status', String(status), ...fields], endStream ? { endStream } : {});
  }

  onClientEnded(): void {
    if (this.held) this.cut();
    else if (this.onContentOver !== undefined) this.onContentOver();
    else if (this.reading !== undefined) this.failContent('content_malformed');
  }

  onClosed(): void {
    this.answerLease?.release();
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

  /** Stall detection applies again to what was already written. */
  override letGo(onLeft: () => void): void {
    super.letGo(onLeft);
    this.held = false;
    this.progressMs = this.context.monotonic();
  }

  /** Other streams go on; the connection ends after GOAWAY and its last stream. */
  endForGood(): void {
    this.stream.end();
  }
}
