/**
 * One request on its connection and the answer it is owed: the `Request` that the handler sees, over node:http. Only the
 * raw fields of the message are read; node:http's own joining of repeated fields hides what must be refused.
 *
 * Members that an ordinary read never asks for (`id`, `peer`) are getters: making them costs more than the rest
 * of the adapter. An Exchange is therefore not to be spread into another object.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ReceivedContent, Request, Response } from '../http/message.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import { type RequestFields, readRequestFields } from '../http/request-fields.ts';
import type { Connection, Received } from './connection.ts';
import { ContentReading } from './content-reading.ts';
import type { Context } from './context.ts';
import { formatRequestId } from './request-id.ts';

const nothing: ReceivedContent = { ok: true, bytes: new Uint8Array(0) };

export class Exchange implements Request, Received {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  readonly fields: RequestFields;
  readonly rawFields: readonly string[];
  readonly context: Context;
  readonly connection: Connection;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly startedMs: number;
  answered = false;
  /** The client holds its content back until it sees 100 (Continue). */
  awaitsContinue: boolean;
  /** Content was asked for; what of it is unread stays unread. */
  reading: ContentReading | undefined;
  #contentFailure: ProblemCode | undefined;
  readonly #number: number;

  constructor(context: Context, connection: Connection, incoming: IncomingMessage, outgoing: ServerResponse) {
    this.method = incoming.method ?? '';
    this.target = incoming.url ?? '';
    this.version = incoming.httpVersion;
    this.rawFields = incoming.rawHeaders;
    this.fields = readRequestFields(incoming.rawHeaders);
    this.context = context;
    this.connection = connection;
    this.incoming = incoming;
    this.outgoing = outgoing;
    this.startedMs = context.monotonic();
    this.awaitsContinue = false;
    context.received += 1;
    this.#number = context.received;
  }

  get id(): string {
    return formatRequestId(this.context.requestIdPrefix, this.#number);
  }

  get peer(): string {
    return this.connection.peer;
  }

  /** The message announces content, though it may turn out empty. */
  get announcesContent(): boolean {
    return this.fields.transferEncoding !== undefined || this.announcedBytes > 0;
  }

  get announcedBytes(): number {
    return this.fields.contentLength === undefined ? 0 : Number(this.fields.contentLength);
  }

  /**
   * The content as transferred, at most `bytesMax` octets (RFC 9110 §6.4). A length announced over the limit is refused
   * before anything is read or 100 (Continue) is sent.
   *
   * @throws {Error} when called twice: a defect of the caller
   */
  async readContent(bytesMax: number): Promise<ReceivedContent> {
    if (this.reading !== undefined) throw new Error('the content of a request is read once');
    if (this.#contentFailure !== undefined) return { ok: false, code: this.#contentFailure };
    if (!this.announcesContent) return nothing;
    if (this.announcedBytes > bytesMax) return { ok: false, code: 'content_too_large' };
    // The client may have left while the handler was busy; a destroyed stream tells nobody a second time.
    if (this.incoming.destroyed) return { ok: false, code: 'content_malformed' };
    if (this.awaitsContinue) {
      this.awaitsContinue = false;
      this.outgoing.writeContinue();
    }
    const { contentWatch: watch, limits, monotonic } = this.context;
    this.reading = new ContentReading(this.incoming, { bytesMax, watch, limits, nowMs: monotonic() });
    return this.reading.received;
  }

  failContent(code: ProblemCode): void {
    if (this.reading === undefined) this.#contentFailure = code;
    else this.reading.fail(code);
  }

  /** The answer is handed to the socket, or never will be: reports it and counts the request as no longer under way. */
  settle(response: Pick<Response, 'status' | 'route' | 'code'>): void {
    if (this.answered) return;
    const { context, connection } = this;
    const nowMs = context.monotonic();
    this.answered = true;
    connection.underWay -= 1;
    connection.activeMs = nowMs;
    context.underWay -= 1;
    context.observe({
      kind: 'answered',
      exchange: this,
      method: this.method,
      route: response.route ?? 'none',
      status: response.status,
      code: response.code,
      durationMs: nowMs - this.startedMs,
    });
  }
}
