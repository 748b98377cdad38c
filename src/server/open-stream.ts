/**
 * Content that is produced while it is sent (§6). States:
 *
 * - open: the producer writes; at `false` it waits, and the waiting octets are limited: a client that is too slow
 *   for the limit, or makes no progress for `answerStallTimeoutMs`, is cut off, since it can resume an event stream.
 * - ended: by the producer; what it wrote is flushed, the connection stays open.
 * - left: the client left, or closed its sending side, which means the same for a reader of events.
 * - drained: the server stops: the producer is notified, the stream ends, and over HTTP/1.1 the connection.
 *
 * The producer's closing function is called once, in `left` and `drained`, and never in `ended`.
 *
 * Responses that stay open, event streams and WebSockets, are limited (§8): of all callers (503), and of one principal or, without one, of
 * one address (429). Administrators have a reserve beyond the limit. A draining server opens none.
 */

import type { ContentFile, ContentSink, ContentStream, HeldMemory, Response } from '../http/message.ts';
import { isFile, isStream } from '../http/message.ts';
import type { MemoryLease } from '../memory/budget.ts';
import type { ConverseOptions, OpenSocket } from '../realtime/websocket/websocket-wire.ts';
import type { Context, HeldStream } from './context.ts';
import { problemAnswer } from './handle.ts';
import { textBytesMax, uncountedBytesMax, waitingAnswerBytes } from './limits.ts';
import type { RequestUnderWay } from './request-under-way.ts';

const readyBytesMax = 16 * 1024;

type Mode = 'open' | 'ended' | 'left' | 'drained';

export function openStream(exchange: RequestUnderWay, content: ContentStream): void {
  const stream = new OpenStream(exchange);
  stream.start(content);
}

class OpenStream implements ContentSink, HeldStream {
  readonly memory: HeldMemory;
  readonly #exchange: RequestUnderWay;
  readonly #lease: MemoryLease;
  #mode: Mode = 'open';
  #closeProducer: (() => void) | undefined;
  #onReady: (() => void) | undefined;
  #moved = false;
  #stillSinceMs: number | undefined;

  constructor(exchange: RequestUnderWay) {
    this.#exchange = exchange;
    this.#lease = exchange.context.memory.budget.lease('streams', exchange.memoryHolder);
    this.memory = {
      whenRoom: (octets, go) => this.#lease.whenRoom(octets, go),
      set: (octets) => this.#lease.set(octets),
      share: (octets) => this.#lease.share(octets),
    };
  }

  start(content: ContentStream): void {
    const { context } = this.#exchange;
    context.streams.add(this, this.#exchange.holder);
    this.#exchange.holdOpen(this.#onLeft);
    try {
      this.#closeProducer = content.open(this);
    } catch (error) {
      context.observe({ kind: 'failed', id: this.#exchange.id, error });
      this.#onLeft();
      return;
    }
    if (this.#mode === 'left' || this.#mode === 'drained') this.#tellProducer();
  }

  write(content: string | Uint8Array): boolean {
    if (this.#mode !== 'open') return false;
    const { sink, context } = this.#exchange;
    if (this.#exchange.isGone) {
      this.#onLeft();
      return false;
    }
    sink.write(content, this.#onFlushed);
    if (sink.writableLength <= context.limits.streamBufferBytesMax) return this.#isReady();
    this.#cutOff('full');
    return false;
  }

  #cutOff(why: 'full' | 'stalled'): void {
    const { context, peer, sink } = this.#exchange;
    context.observe({ kind: 'stream-cut', peer, why, waitingBytes: sink.writableLength });
    this.#onLeft();
  }

  onReady(listener: () => void): void {
    this.#onReady = listener;
  }

  end(): void {
    if (this.#mode !== 'open') return;
    this.#enter('ended');
    this.#exchange.sink.end();
  }

  fail(error: unknown): void {
    if (this.#mode !== 'open') return;
    this.#exchange.context.observe({ kind: 'failed', id: this.#exchange.id, error });
    this.#onLeft();
  }

  /** Cuts a client without progress, which would hold memory for ever. Pieces are short (§6): a slow one progresses. */
  sweep(nowMs: number): void {
    const { sink, context } = this.#exchange;
    if (this.#moved || this.#stillSinceMs === undefined || sink.writableLength === 0) {
      this.#moved = false;
      this.#stillSinceMs = nowMs;
    } else if (nowMs - this.#stillSinceMs > context.limits.answerStallTimeoutMs) this.#cutOff('stalled');
  }

  close(): void {
    if (this.#mode !== 'open') return;
    // It may write its last words.
    this.#tellProducer();
    if (this.#mode !== 'open') return;
    this.#enter('drained');
    this.#exchange.endForGood();
  }

  /**
   * Called for each write and not on 'drain': if a message of several chunks fills the buffer within one turn and the
   * socket then accepts it at once, node 26 returns false and never emits 'drain'.
   */
  readonly #onFlushed = (): void => {
    this.#moved = true;
    if (this.#mode === 'open' && this.#isReady()) this.#onReady?.();
  };

  #isReady(): boolean {
    const { sink } = this.#exchange;
    return sink.writableLength < readyBytesMax;
  }

  readonly #onLeft = (): void => {
    if (this.#mode !== 'open') return;
    this.#enter('left');
    this.#tellProducer();
    this.#exchange.cut();
  };

  #enter(mode: Mode): void {
    this.#mode = mode;
    this.#lease.release();
    this.#exchange.context.streams.delete(this);
    this.#exchange.letGo(this.#onLeft);
  }

  #tellProducer(): void {
    const close = this.#closeProducer;
    this.#closeProducer = undefined;
    close?.();
  }
}

/** Until a response of another caller may have ended. */
const retrySeconds = 5;

/** The response, or a refusal in its place. Records on the request whose share the response counts against. */
export function capOpen(request: RequestUnderWay, response: Response): Response {
  const held = heldBy(request.context, response);
  if (held === undefined) return response;
  const isAdministrator = response.holder?.isAdministrator ?? false;
  const { id } = response.holder ?? {};
  // Ids and addresses are separate namespaces: no id begins with a space.
  request.holder = id ?? ` ${request.context.addressOf(request)}`;
  const { answers, max, reserved } = held;
  const shareMax = id === undefined ? held.perAddressMax : held.perPrincipalMax;
  const isFull = answers.size >= max + (isAdministrator ? reserved : 0);
  const isShareUsed = !isAdministrator && shareMax > 0 && answers.count(request.holder) >= shareMax;
  if (!request.context.draining && !isFull && !isShareUsed) return response;
  const code = isShareUsed && !request.context.draining ? 'streams_exhausted' : 'unavailable';
  const refused = problemAnswer({ code }, request, { retryAfterSeconds: retrySeconds });
  return response.route === undefined ? refused : { ...refused, route: response.route };
}

/** Opens the WebSocket of a response with all its fields, and counts it among those of its holder until it is closed. */
export function openWebSocket(
  { context, peer, memoryHolder, holder }: RequestUnderWay,
  { conversation, fields }: Response,
  open: (options: ConverseOptions) => OpenSocket,
): void {
  if (conversation === undefined) throw new Error('a WebSocket requires a conversation');
  const { limits, observe, fleet, sockets } = context;
  let socket: OpenSocket | undefined;
  let closed = false;
  socket = open({
    ...{ conversation, fields, peer, limits, observe, fleet },
    memory: context.memory.budget.lease('websockets', memoryHolder),
    onClosed: () => {
      closed = true;
      if (socket !== undefined) sockets.delete(socket);
    },
  });
  if (!closed) sockets.add(socket, holder);
}

type Held = {
  readonly answers: { readonly size: number; count(holder: string): number };
  readonly max: number;
  /** Responses that administrators may hold open beyond `max`. */
  readonly reserved: number;
  readonly perPrincipalMax: number;
  readonly perAddressMax: number;
};

/** Undefined: the response does not stay open. */
function heldBy({ streams, sockets, limits }: Context, response: Response): Held | undefined {
  if (response.conversation !== undefined) {
    return {
      answers: sockets,
      max: limits.realtimeSocketsMax,
      reserved: limits.realtimeSocketsReservedMax,
      perPrincipalMax: limits.realtimeSocketsPerPrincipalMax,
      perAddressMax: limits.realtimeSocketsPerAddressMax,
    };
  }
  if (!isStream(response.content) || response.headOnly === true) return undefined;
  return {
    answers: streams,
    max: limits.streamsMax,
    reserved: limits.streamsReservedMax,
    perPrincipalMax: limits.streamsPerPrincipalMax,
    perAddressMax: limits.streamsPerAddressMax,
  };
}

/** Until waiting responses have left. */
const roomSeconds = 1;

/** True for content that the memory budget does not count, and so may wait. */
export function isShort(content: Response['content']): boolean {
  return content === null || (!isProduced(content) && content.length <= uncountedBytesMax);
}

/** True for content that comes while it is sent, and is not in memory before. */
function isProduced(content: Response['content']): content is ContentStream | ContentFile {
  return isStream(content) || isFile(content);
}

/**
 * Converts long text to octets, which a socket keeps without a copy and which can be cut into pieces. Used for HTTP/1.1
 * (exchange.ts) and HTTP/2 (http2/stream-exchange.ts).
 */
export function inOctets<C extends Response['content']>(content: C): C | Uint8Array {
  return typeof content === 'string' && content.length > textBytesMax ? Buffer.from(content) : content;
}

export function hasRoomFor(request: RequestUnderWay, content: string | Uint8Array): boolean {
  const { budget } = request.context.memory;
  const isHeld = typeof content !== 'string' && budget.isShared(content);
  return budget.hasRoom(request.memoryHolder, waitingAnswerBytes + (isHeld ? 0 : content.length));
}

/** A short 503 with Retry-After, in place of a response for which the memory budget has no room. */
export function noRoom(request: RequestUnderWay, response: Response): Response {
  const { content } = response;
  const bytes = content === null || isProduced(content) ? 0 : content.length;
  request.context.memory.budget.refused('answers', bytes);
  const message = 'the memory budget for waiting responses is used up';
  const refused = problemAnswer({ code: 'unavailable', message }, request, {
    retryAfterSeconds: roomSeconds,
  });
  return response.route === undefined ? refused : { ...refused, route: response.route };
}
