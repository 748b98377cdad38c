/**
 * A request over HTTP/1.1 and the answer it is owed: the `Request` that the handler sees, over node:http.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Response } from '../http/message.ts';
import { type RequestFields, readRequestFields } from '../http/request-fields.ts';
import type { Connection, Received } from './connection.ts';
import type { ContentSource } from './content-reading.ts';
import type { Context } from './context.ts';
import { RequestUnderWay } from './request-under-way.ts';
import { sendAnswer } from './send-answer.ts';

export class Exchange extends RequestUnderWay implements Received {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  readonly fields: RequestFields;
  readonly rawFields: readonly string[];
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;

  constructor(context: Context, connection: Connection, incoming: IncomingMessage, outgoing: ServerResponse) {
    super(context, connection);
    this.method = incoming.method ?? '';
    this.target = incoming.url ?? '';
    this.version = incoming.httpVersion;
    this.rawFields = incoming.rawHeaders;
    this.fields = readRequestFields(incoming.rawHeaders);
    this.incoming = incoming;
    this.outgoing = outgoing;
  }

  get announcesContent(): boolean {
    return this.fields.transferEncoding !== undefined || this.announcedBytes > 0;
  }

  protected get contentSource(): ContentSource | undefined {
    return this.incoming.destroyed ? undefined : this.incoming;
  }

  protected writeContinue(): void {
    this.outgoing.writeContinue();
  }

  get sentStatus(): number | undefined {
    return this.outgoing.headersSent ? this.outgoing.statusCode : undefined;
  }

  get sink(): ServerResponse {
    return this.outgoing;
  }

  send(response: Response): void {
    sendAnswer(this, response);
  }

  cut(): void {
    this.outgoing.destroy();
  }

  /** A client that closes its sending side has left: of a reader of events it means nothing else. */
  override holdOpen(onLeft: () => void): void {
    super.holdOpen(onLeft);
    this.connection.streaming = true;
    this.connection.socket.on('end', onLeft);
    this.outgoing.flushHeaders();
  }

  override letGo(onLeft: () => void): void {
    super.letGo(onLeft);
    this.connection.streaming = false;
    this.connection.socket.off('end', onLeft);
  }

  endForGood(): void {
    const { outgoing, connection } = this;
    connection.closing = true;
    outgoing.once('finish', () => connection.socket.destroySoon());
    outgoing.end();
  }
}
