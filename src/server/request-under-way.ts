/**
 * One request and the answer it is owed, whatever protocol it came by: what HTTP/1.1 (exchange.ts) and the streams of
 * HTTP/2 (http2/stream-exchange.ts) share. The raw fields alone are read; node's own joining of repeated fields
 * hides what must be refused.
 *
 * Members that an ordinary read never asks for (`id`, `peer`) are getters: making them costs more than the rest
 * of the adapter. It is therefore not to be spread into another object.
 */
import type { ReceivedContent, Request, RequestMemory, Response } from '../http/message.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import type { RequestFields } from '../http/request-fields.ts';
import type { Holder, MemoryLease } from '../memory/budget.ts';
import type { Connection } from './connection.ts';
import { ContentReading, type ContentSource } from './content-reading.ts';
import type { Context } from './context.ts';
import { uncountedBytesMax } from './limits.ts';
import { formatRequestId } from './request-id.ts';

const nothing: ReceivedContent = { ok: true, bytes: new Uint8Array(0) };

/** Where content goes that is produced while it is sent: the answer of node:http, or a multiplexed stream. */
export type AnswerSink = {
  readonly writableLength: number;
  write(content: string | Uint8Array, onFlushed: () => void): unknown;
  end(): unknown;
  on(event: 'close', listener: () => void): unknown;
  off(event: 'close', listener: () => void): unknown;
};

export abstract class RequestUnderWay implements Request, RequestMemory {
  abstract readonly method: string;
  abstract readonly target: string;
  abstract readonly version: string;
  abstract readonly fields: RequestFields;
  abstract readonly rawFields: readonly string[];
  readonly context: Context;
  readonly connection: Connection;
  readonly startedMs: number;
  answered = false;
  /** Whose share an answer that stays open counts against (cap-open.ts). */
  holder = '';
  /** The client holds its content back until it sees 100 (Continue). */
  awaitsContinue = false;
  /** Content was asked for; what of it is unread stays unread. */
  reading: ContentReading | undefined;
  #contentFailure: ProblemCode | undefined;
  #principal: string | undefined;
  #isReserved = false;
  /** Of the content and what is made of it. */
  #lease: MemoryLease | undefined;
  #workedOnBytes = 0;
  readonly #number: number;

  constructor(context: Context, connection: Connection) {
    this.context = context;
    this.connection = connection;
    this.startedMs = context.monotonic();
    context.received += 1;
    this.#number = context.received;
  }

  get id(): string {
    return formatRequestId(this.context.requestIdPrefix, this.#number);
  }

  get peer(): string {
    return this.connection.peer;
  }

  get reserved(): boolean {
    return this.connection.reserved;
  }

  get memory(): RequestMemory {
    return this;
  }

  /** Whose share of the memory budget it counts against: the principal's, before one is known the address's, which begins with a space. */
  get memoryHolder(): Holder {
    const name = this.#principal ?? ` ${this.context.addressOf(this)}`;
    return { name, isReserved: this.#isReserved };
  }

  ofPrincipal(id: string, isReserved: boolean): void {
    this.#principal = id;
    this.#isReserved = isReserved;
  }

  hold(octets: number): boolean {
    this.#lease ??= this.context.memory.budget.lease('content', this.memoryHolder);
    return this.#lease.growOrRefuse(octets);
  }

  giveBack(octets: number): void {
    if (this.#lease !== undefined) this.#lease.set(this.#lease.bytes - octets);
  }

  takeTurn(octets: number): Promise<void> | undefined {
    if (octets <= uncountedBytesMax) return undefined;
    this.#workedOnBytes += octets;
    return this.context.memory.work.enter(octets);
  }

  /** The message announces content, though it may turn out empty. */
  abstract get announcesContent(): boolean;

  /** Where the content is read from; undefined: the client is gone. */
  protected abstract get contentSource(): ContentSource | undefined;

  protected abstract writeContinue(): void;

  /** Status of the answer once it is written, or queued: no other answer is possible then. */
  abstract get sentStatus(): number | undefined;

  /** Answers, exactly once. Throws where the answer cannot be written. */
  abstract send(response: Response): void;

  /** Gives the answer up so that the client sees it broken off. */
  abstract cut(): void;

  abstract get sink(): AnswerSink;

  /** The answer stays open: its fields are sent at once, and `onLeft` is called when the client leaves. */
  holdOpen(onLeft: () => void): void {
    this.sink.on('close', onLeft);
  }

  onGone(listener: () => void): () => void {
    this.sink.on('close', listener);
    return () => void this.sink.off('close', listener);
  }

  letGo(onLeft: () => void): void {
    this.sink.off('close', onLeft);
  }

  /** Ends an answer that was held open, and with it what the client could send further requests on. */
  abstract endForGood(): void;

  /** Octets of content that the message announces; 0 where it does not say. */
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
    const { budget } = this.context.memory;
    if (this.announcedBytes > uncountedBytesMax && !budget.hasRoom(this.memoryHolder, this.announcedBytes)) {
      budget.refused('content', this.announcedBytes);
      return {
        ok: false,
        code: budget.canEverHold(this.memoryHolder, this.announcedBytes)
          ? 'unavailable'
          : 'content_too_large',
      };
    }
    // The client may have left while the handler was busy; a destroyed stream tells nobody a second time.
    const source = this.contentSource;
    if (source === undefined) return { ok: false, code: 'content_malformed' };
    if (this.awaitsContinue) {
      this.awaitsContinue = false;
      this.writeContinue();
    }
    const { contentWatch: watch, limits, monotonic } = this.context;
    this.reading = new ContentReading(source, {
      ...{ bytesMax, watch, limits, nowMs: monotonic() },
      hold: (bytes) => this.hold(bytes),
    });
    return this.reading.received;
  }

  /** Ends the reading of content, now or when it starts. */
  failContent(code: ProblemCode): void {
    if (this.reading === undefined) this.#contentFailure = code;
    else this.reading.fail(code);
  }

  /** The request counts as under way until its answer is settled. */
  begin(): void {
    this.connection.underWay += 1;
    this.connection.requests += 1;
    this.connection.activeMs = this.startedMs;
    this.context.underWay += 1;
  }

  /** The answer is handed to the socket, or never will be: reports it and counts the request as no longer under way. */
  settle(response: Pick<Response, 'status' | 'route' | 'code'>): void {
    if (this.answered) return;
    const { context, connection } = this;
    const nowMs = context.monotonic();
    this.answered = true;
    this.#lease?.release();
    if (this.#workedOnBytes > 0) context.memory.work.leave(this.#workedOnBytes);
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
