/**
 * One request and its response over any protocol: the base of HTTP/1.1 (exchange.ts) and of the streams of HTTP/2
 * (http2/stream-exchange.ts). Only the raw fields are read, since node joins repeated fields that must be refused.
 *
 * Members that an ordinary read never needs (`id`, `peer`) are getters: creating them costs more than the rest of the
 * adapter. So it must not be spread into another object.
 */

import { randomBytes } from 'node:crypto';
import type { OpenedContent, ReceivedContent, Request, RequestMemory, Response } from '../http/message.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import type { RequestFields } from '../http/request-fields.ts';
import { requireClient } from '../kernel/walk-context.ts';
import type { Holder, MemoryLease } from '../memory/budget.ts';
import { traceIdOf, traceparentIn } from '../observe/tracing.ts';
import { StoreUnavailable } from '../store/store.ts';
import { ArrivingReading, arrivingBytesMax } from './arriving-content.ts';
import type { Connection } from './connection.ts';
import { ContentReading, type ContentSource } from './content-reading.ts';
import type { Context } from './context.ts';
import { uncountedBytesMax } from './limits.ts';

const nothing: ReceivedContent = { ok: true, bytes: new Uint8Array(0) };

async function* noChunks(): AsyncGenerator<Uint8Array> {
  // There is no content.
}

type Refused = Exclude<ReceivedContent, { ok: true }>;

const retryAfterSeconds = 1;

/** Content is there twice when it is joined from what arrived. */
const heldTimes = 2;

/** The target of content that is produced while it is sent: the response of node:http, or a multiplexed stream. */
type AnswerSink = {
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
  /** Set by tracing. */
  traceparent: string | undefined;
  /** The holder whose share a response that stays open counts against (open-stream.ts). */
  holder = '';
  /** The client waits for 100 (Continue) before it sends its content. */
  awaitsContinue = false;
  /** Set once the content is being read; what it leaves unread stays unread. */
  reading: ContentReading | ArrivingReading | undefined;
  #isRead = false;
  #contentFailure: ProblemCode | undefined;
  #principal: string | undefined;
  #isReserved = false;
  #sentFields: readonly string[] | undefined;
  #lease: MemoryLease | undefined;
  #workedOnBytes = 0;
  #madeBytes = 0;
  #announcedBytes: number | undefined;
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

  /** The target without its query, for the log of a developer. */
  get path(): string {
    const [path = ''] = this.target.split('?', 1);
    return path;
  }

  /** Of the trace that the request is in, also where this program sends no traces. */
  get traceId(): string | undefined {
    return traceIdOf(this.traceparent ?? traceparentIn(this.rawFields));
  }

  /** The principal, once it is known. */
  get caller(): string | undefined {
    return this.#principal;
  }

  /** The visited nodes of the decision graph, in development. */
  get trace(): string | undefined {
    const fields = this.#sentFields ?? [];
    const at = fields.indexOf('Comity-Trace');
    return at === -1 ? undefined : fields[at + 1];
  }

  /** The holder in the memory budget: the principal; before authentication the address, prefixed by a space. */
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

  /** Gives back, once the response is ready, what the content and the work held. */
  release(): void {
    const { work, made } = this.context.memory;
    this.#lease?.release();
    if (this.#workedOnBytes > 0) work.leave(this.#workedOnBytes);
    if (this.#madeBytes > 0) made.leave(this.#madeBytes);
    this.#workedOnBytes = 0;
    this.#madeBytes = 0;
  }

  giveBack(octets: number): void {
    if (this.#lease !== undefined) this.#lease.set(this.#lease.bytes - octets);
  }

  get madeMax(): number {
    return this.context.memory.budget.bytesMax;
  }

  roomToProcess(octets: number): Promise<void> | undefined {
    if (octets <= uncountedBytesMax) return undefined;
    this.#workedOnBytes += octets;
    return this.context.memory.work.enter(octets);
  }

  nextTurn(octets: number): Promise<void> | undefined {
    return octets <= uncountedBytesMax ? undefined : this.context.turns.nextOfBegun();
  }

  makeRoom(octets: number, answered = 0): Promise<void> | undefined {
    const { budget, made } = this.context.memory;
    if (octets === 0 || this.#madeBytes > 0) return undefined;
    if (made.isFull) {
      budget.refused('content', octets);
      throw new StoreUnavailable('the memory for what requests make is used up', { retryAfterSeconds });
    }
    this.#demandRoomToAnswer(answered);
    this.#madeBytes = octets;
    return made.enter(octets)?.then(() => {
      requireClient(this);
      this.#demandRoomToAnswer(answered);
    });
  }

  #demandRoomToAnswer(octets: number): void {
    const { budget } = this.context.memory;
    if (octets === 0 || budget.hasRoom(this.memoryHolder, octets)) return;
    budget.refused('answers', octets);
    throw new StoreUnavailable('the memory for responses is used up', { retryAfterSeconds });
  }

  /** The message announces content, which may still be empty. */
  abstract get announcesContent(): boolean;

  /** Undefined: the client has left. */
  protected abstract get contentSource(): ContentSource | undefined;

  /** Takes content that has arrived completely; undefined if it has not, or has more octets. */
  protected takeWhole(_bytesMax: number): Uint8Array | undefined {
    return undefined;
  }

  protected abstract writeContinue(): void;

  /** Status of the response once it is written or queued: no other response is possible then. */
  abstract get sentStatus(): number | undefined;

  /** Sends the response, exactly once. Throws if it cannot be written. */
  abstract send(response: Response): void;

  /** Aborts the response, so that the client sees the failure. */
  abstract cut(): void;

  abstract get sink(): AnswerSink;

  /** The client has left: known as soon as its socket or stream is destroyed, and `close` comes in a later turn. */
  abstract get isGone(): boolean;

  /** Keeps the response open: its fields are sent at once, and `onLeft` is called when the client leaves. */
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

  /** Ends a response that was held open, and prevents further requests of the client. */
  abstract endForGood(): void;

  /** Announced length of the content; 0 if unknown. */
  get announcedBytes(): number {
    this.#announcedBytes ??= this.fields.contentLength === undefined ? 0 : Number(this.fields.contentLength);
    return this.#announcedBytes;
  }

  /**
   * The content as transferred, at most `bytesMax` octets (RFC 9110 §6.4). An announced length over the limit is
   * refused before anything is read or 100 (Continue) is sent.
   * @throws {Error} when called twice: a defect of the caller
   */
  async readContent(bytesMax: number): Promise<ReceivedContent> {
    if (!this.#mayRead()) return nothing;
    // The parser takes the octets that arrived with the header section only after it has handed over the request.
    await undefined;
    const source = this.#sourceWithin(bytesMax, this.announcedBytes);
    if ('code' in source) return source;
    const whole = this.awaitsContinue ? undefined : this.takeWhole(Math.min(bytesMax, uncountedBytesMax));
    this.#isRead = true;
    if (whole !== undefined) return { ok: true, bytes: whole };
    this.#continue();
    const { contentWatch: watch, limits, monotonic } = this.context;
    const reading = new ContentReading(source, {
      ...{ bytesMax, watch, limits, nowMs: monotonic() },
      hold: (bytes) => this.hold(bytes),
      withoutRoom: (bytes) => this.#withoutRoom(bytes),
    });
    this.reading = reading;
    return reading.received;
  }

  /** The content as it arrives, of any length: it never holds more than `arrivingBytesMax` octets. @throws {Error} as `readContent` */
  async openContent(bytesMax: number): Promise<OpenedContent> {
    if (!this.#mayRead()) return { ok: true, content: noChunks() };
    await undefined;
    const heldBytes = Math.min(this.announcedBytes > 0 ? this.announcedBytes : bytesMax, arrivingBytesMax);
    const source = this.#sourceWithin(bytesMax, heldBytes);
    if ('code' in source) return source;
    if (heldBytes > uncountedBytesMax && !this.hold(heldBytes)) return { ok: false, code: 'unavailable' };
    this.#isRead = true;
    this.#continue();
    const { contentWatch: watch, limits, monotonic } = this.context;
    const content = new ArrivingReading(source, { bytesMax, watch, limits, nowMs: monotonic() });
    this.reading = content;
    return { ok: true, content };
  }

  /** False: there is no content. */
  #mayRead(): boolean {
    if (this.#isRead) throw new Error('the content of a request can be read only once');
    return this.announcesContent;
  }

  /** @param heldBytes that are held at least */
  #sourceWithin(bytesMax: number, heldBytes: number): ContentSource | Refused {
    if (this.#contentFailure !== undefined) return { ok: false, code: this.#contentFailure };
    if (this.announcedBytes > bytesMax) return { ok: false, code: 'content_too_large' };
    const { budget } = this.context.memory;
    if (heldBytes > uncountedBytesMax && !budget.hasRoom(this.memoryHolder, heldBytes)) {
      budget.refused('content', heldBytes);
      return this.#withoutRoom(heldBytes);
    }
    // It would be refused only once it has arrived.
    if (!budget.canEverHold(this.memoryHolder, heldTimes * heldBytes)) return this.#withoutRoom(heldBytes);
    // The client may have left while the handler was busy; a destroyed stream emits no second event.
    return this.contentSource ?? { ok: false, code: 'content_malformed' };
  }

  #continue(): void {
    if (!this.awaitsContinue) return;
    this.awaitsContinue = false;
    this.writeContinue();
  }

  #withoutRoom(bytes: number): Refused {
    const { budget } = this.context.memory;
    const { memoryHolder } = this;
    if (budget.canEverHold(memoryHolder, heldTimes * bytes)) return { ok: false, code: 'unavailable' };
    const most = Math.floor((memoryHolder.isReserved ? budget.bytesMax : budget.shareBytesMax) / heldTimes);
    const message = `the content has at most ${most} octets: what one client may use of a memory budget of ${budget.bytesMax} octets has room for no more (COMITY_MEMORY_BYTES_MAX, COMITY_MEMORY_SHARE_PERCENT_MAX)`;
    return { ok: false, code: 'content_too_large', message };
  }

  failContent(code: ProblemCode): void {
    if (this.reading === undefined) this.#contentFailure = code;
    else this.reading.fail(code);
  }

  /** Takes content as it arrives, which lasts as long as the client needs. */
  get isArriving(): boolean {
    return this.reading instanceof ArrivingReading;
  }

  /** Leaves unread what no reader has taken of content that arrives: it would stop the rest. */
  protected leaveContent(): void {
    if (this.reading instanceof ArrivingReading) this.reading.leave();
  }

  begin(): void {
    this.connection.underWay += 1;
    this.connection.requests += 1;
    this.connection.activeMs = this.startedMs;
    this.context.underWay += 1;
  }

  /** The response is handed to the socket, or never will be: reports it and ends the count as under way. */
  settle(response: Pick<Response, 'status' | 'route' | 'code'> & Partial<Pick<Response, 'fields'>>): void {
    if (this.answered) return;
    this.#sentFields = response.fields;
    const { context, connection } = this;
    const nowMs = context.monotonic();
    this.answered = true;
    this.release();
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

const prefixBytes = 5;

/**
 * A random prefix of request ids, which error responses and log lines share. It distinguishes processes (two share one
 * with a chance of 1 in 2^40); a counter distinguishes requests. Ids identify, they do not authorize.
 */
export function requestIdPrefix(): string {
  return randomBytes(prefixBytes).toString('hex');
}

/** About 60 ns; created only on use, which a read without a debug log never makes. */
function formatRequestId(prefix: string, number: number): string {
  return `${prefix}-${number.toString(36)}`;
}
