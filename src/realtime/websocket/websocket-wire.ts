/**
 * One WebSocket, over a TCP or TLS socket or a stream of HTTP/2 (§4.13; RFC 6455, RFC 8441): `ws` reads the frames, the
 * rest is here. converse.ts answers the handshake. States:
 *
 * - open: messages go both ways, pings are sent.
 * - closing: a Close frame was sent, or the client ended; earlier messages still go out, no further ones pass.
 * - closed: the stream is gone: `onClosed` of the conversation and of the server, and one observation, each once.
 *
 * From `closing`, the stream has `realtimeCloseMs` to close, then it is cut.
 */
import type { Duplex, Writable } from 'node:stream';
import type { Conversation, ConversationListener, ConversationPeer, HeldMemory } from '../../http/message.ts';
import type { MemoryLease } from '../../memory/budget.ts';
import type { Observe } from '../../observe/observation.ts';
import { onEnd } from '../../observe/own-emitter.ts';
import { type Compression, createMessageInflater } from './agree-compression.ts';
import { closeFrame, type Fleet, failureCodeOf, pingFrame, pongFrame, Receiver } from './frames.ts';

type WebSocketLimits = {
  readonly realtimePingMs: number;
  readonly realtimeMessageBytesMax: number;
  readonly realtimeBufferBytesMax: number;
  readonly realtimeCloseMs: number;
  /** Time without progress after which it is closed with 1013. */
  readonly answerStallTimeoutMs: number;
  readonly realtimeCompression: 'on' | 'off';
  readonly realtimeCompressionBytesMin: number;
};

export type ConverseOptions = {
  readonly conversation: Conversation;
  /** Name, value ... of the response, such as Date and API-Version, without those of the connection and of framing. */
  readonly fields: readonly string[];
  readonly peer: string;
  readonly limits: WebSocketLimits;
  readonly observe: Observe;
  /** Called once at the end, never before the opening call has returned. */
  readonly onClosed: () => void;
  /** Shared by all WebSockets of a server (createFleet in frames.ts). */
  readonly fleet: Fleet;
  /** Share of the memory budget for what waits for the client and what the conversation reads for it, released at the end. */
  readonly memory: MemoryLease;
};

/** An open WebSocket, as its server holds it. */
export type OpenSocket = Pick<WebSocketWire, 'close' | 'terminate' | 'sweep'>;

type Transport = { readonly stream: Duplex; readonly cut: () => void };

type End = { readonly code: number; readonly by: 'client' | 'server' | 'connection' };

/** Fragments of a message, empty ones too; and pieces of TCP of one frame. */
const fragmentsMax = 1024;
const frameChunksMax = 16 * 1024;
/** Pongs that a client has not received; of further pings only the last is answered (RFC 6455 §5.5.3). */
const waitingPongsMax = 16;
/** A client is ready for more when a fourth of the limit waits. */
const readyPartOfBuffer = 1 / 4;
const statusAbsent = 1005;
const statusAbnormal = 1006;

export class WebSocketWire implements ConversationPeer {
  readonly memory: WaitingMemory;
  readonly #options: ConverseOptions;
  readonly #compression: Compression;
  readonly #cut: () => void;
  readonly #stream: Duplex;
  readonly #outbox: Outbox;
  readonly #receiver: Receiver;
  readonly #readyBytesMax: number;
  readonly #openedAt = performance.now();
  #mode: 'open' | 'closing' | 'closed' = 'open';
  #end: End | undefined;
  #listener: ConversationListener | undefined;
  #onReady: (() => void) | undefined;
  #stopPings: (() => void) | undefined;
  #closeTimer: NodeJS.Timeout | undefined;
  /** A ping has no pong yet. */
  #pinged = false;
  #waitingPongs = 0;
  #latePong: Buffer | undefined;
  /** `send` returned false, and `onReady` is due. */
  #owesReady = false;
  /** The client is so slow that reading from it is paused. */
  #held = false;

  constructor({ stream, cut }: Transport, compression: Compression, options: ConverseOptions) {
    const { limits } = options;
    this.#options = options;
    this.#compression = compression;
    this.#cut = cut;
    this.#stream = stream;
    this.#readyBytesMax = Math.floor(limits.realtimeBufferBytesMax * readyPartOfBuffer);
    const isCompressed = compression.sentWindowBits !== undefined;
    this.#receiver = new Receiver({
      allowSynchronousEvents: true,
      extensions: isCompressed
        ? { 'permessage-deflate': createMessageInflater(limits.realtimeMessageBytesMax) }
        : {},
      isServer: true,
      maxBufferedChunks: frameChunksMax,
      maxFragments: fragmentsMax,
      maxPayload: limits.realtimeMessageBytesMax,
    });
    this.#outbox = new Outbox(stream, this.#onTaken);
    this.memory = new WaitingMemory(this.#outbox, options.memory);
    this.#listen();
  }

  /** The response was written: opens the conversation, then reads frames. */
  open(head: Uint8Array): void {
    const { conversation, fleet } = this.#options;
    this.#stopPings = fleet.ping(this);
    this.#guard(() => {
      this.#listener = conversation.open(this);
    });
    const { complaint } = this.#compression;
    if (complaint !== undefined) this.close(1002, complaint);
    if (head.length > 0) this.#onData(Buffer.from(head.buffer, head.byteOffset, head.length));
    if (this.#stream.destroyed) queueMicrotask(this.#onStreamClosed);
  }

  send(message: string | Uint8Array): boolean {
    if (this.#mode !== 'open') return false;
    const stream = this.#stream;
    const { fleet } = this.#options;
    const frame = fleet.frames.ofText(message, this.#compression.sentWindowBits);
    if (this.#outbox.writableLength + frame.length <= Math.min(this.#readyBytesMax, uncountedBytesMax)) {
      fleet.turn.gather(stream);
      this.#outbox.write(frame);
      return true;
    }
    this.#outbox.write(frame, this.#onTaken);
    // Corked octets do not count as waiting: let the stream have them, and see what remains.
    stream.uncork();
    this.memory.count();
    if (this.#outbox.writableLength <= this.#readyBytesMax && !this.memory.isOver) return true;
    this.#owesReady = true;
    return false;
  }

  waitingBytes(): number {
    return this.memory.isOver ? Number.POSITIVE_INFINITY : this.#outbox.writableLength;
  }

  onReady(listener: () => void): void {
    this.#onReady = listener;
  }

  close(code: number, reason: string): void {
    if (this.#mode !== 'open') return;
    this.#beginClosing({ code, by: 'server' });
    this.#outbox.write(closeFrame(code, reason));
  }

  terminate(): void {
    if (this.#mode === 'closed') return;
    this.#beginClosing({ code: statusAbnormal, by: 'server' });
    this.#cut();
  }

  /**
   * A ping is due; a client that did not answer the previous one is gone (a half-open connection has no other sign).
   */
  beat(): void {
    if (this.#pinged) {
      this.#beginClosing({ code: statusAbnormal, by: 'connection' });
      this.#cut();
      return;
    }
    this.#pinged = true;
    this.#outbox.write(pingFrame);
  }

  /** Closes a stalled WebSocket: a client that answers pings but receives nothing would hold its memory for ever. */
  sweep(nowMs: number): void {
    const { answerStallTimeoutMs } = this.#options.limits;
    if (this.#mode !== 'open' || !this.#outbox.stalls(nowMs, answerStallTimeoutMs)) return;
    this.close(1013, `the client received nothing for ${answerStallTimeoutMs} ms`);
  }

  #listen(): void {
    const stream = this.#stream;
    stream.on('data', this.#onData);
    onEnd(stream, this.#onStreamEnd);
    stream.on('close', this.#onStreamClosed);
    // 'close' follows every error.
    stream.on('error', ignore);
    this.#receiver
      .on('message', this.#onMessage)
      .on('ping', this.#onPing)
      .on('pong', this.#onPong)
      .on('conclude', this.#onConclude)
      .on('drain', this.#onReceiverReady)
      .on('finish', this.#onAllRead)
      .on('error', this.#onBroken);
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#receiver.writableEnded || this.#receiver.destroyed) return;
    const isReady = this.#receiver.write(chunk);
    this.#held = this.#outbox.writableLength > this.#options.limits.realtimeBufferBytesMax;
    if (!isReady || (this.#held && this.#mode === 'open')) this.#stream.pause();
  };
  readonly #onReceiverReady = (): void => {
    if (!this.#held || this.#mode !== 'open') this.#stream.resume();
  };
  readonly #onTaken = (): void => {
    this.memory.count();
    if (this.#mode !== 'open' || this.#outbox.writableLength > this.#readyBytesMax) return;
    if (this.#held) {
      this.#held = false;
      if (!this.#receiver.writableNeedDrain) this.#stream.resume();
    }
    if (!this.#owesReady) return;
    this.#owesReady = false;
    this.#guard(() => this.#onReady?.());
  };

  readonly #onMessage = (data: Buffer, isBinary: boolean): void => {
    if (this.#mode !== 'open') return;
    if (isBinary) this.close(1003, 'only text messages are accepted');
    else this.#guard(() => this.#listener?.onMessage(data.toString()));
  };

  readonly #onPing = (payload: Buffer): void => {
    if (this.#mode !== 'open') return;
    const frame = pongFrame(payload);
    if (this.#waitingPongs < waitingPongsMax) this.#sendPong(frame);
    else this.#latePong = frame;
  };

  #sendPong(frame: Buffer): void {
    this.#waitingPongs += 1;
    this.#outbox.write(frame, this.#onPongTaken);
  }

  readonly #onPongTaken = (): void => {
    this.#waitingPongs -= 1;
    const frame = this.#latePong;
    this.#latePong = undefined;
    if (frame !== undefined && this.#mode === 'open') this.#sendPong(frame);
  };
  readonly #onPong = (): void => {
    this.#pinged = false;
  };
  /** A Close frame arrived: the client's own, which is answered with its code, or its answer to ours. */
  readonly #onConclude = (code: number): void => {
    if (this.#mode === 'open') {
      this.#beginClosing({ code, by: 'client' });
      this.#outbox.write(closeFrame(code, ''));
    }
  };

  /** Invalid frames (RFC 6455 §7.1.7): closes with a code, and reads no further. */
  readonly #onBroken = (error: Error): void => {
    this.close(failureCodeOf(error), error.message);
    this.#finish();
  };

  readonly #onStreamEnd = (): void => {
    this.#receiver.end();
  };

  /** The client's Close frame was read, or it ended without one. */
  readonly #onAllRead = (): void => {
    this.#beginClosing({ code: statusAbnormal, by: 'connection' });
    this.#finish();
  };

  /** The closing handshake is complete: ends our side with FIN or END_STREAM, never with a reset. */
  #finish(): void {
    const stream = this.#stream;
    stream.off('data', this.#onData);
    stream.resume();
    if (!stream.writableEnded) this.#outbox.end();
  }

  #beginClosing(end: End): void {
    if (this.#mode !== 'open') return;
    this.#mode = 'closing';
    this.#end = end;
    this.#stopPings?.();
    this.#closeTimer = setTimeout(this.#cut, this.#options.limits.realtimeCloseMs).unref();
    if (this.#held) this.#stream.resume();
  }

  /** The receiver may still hold what was read before the stream broke; it closes by itself. */
  readonly #onStreamClosed = (): void => {
    if (this.#receiver.closed) this.#onGone();
    else {
      this.#receiver.once('close', this.#onGone);
      if (!this.#receiver.writableEnded) this.#receiver.end();
    }
  };

  readonly #onGone = (): void => {
    if (this.#mode === 'closed') return;
    this.#beginClosing({ code: statusAbnormal, by: 'connection' });
    this.#mode = 'closed';
    this.memory.release();
    clearTimeout(this.#closeTimer);
    this.#stream.off('data', this.#onData).off('end', this.#onStreamEnd).off('close', this.#onStreamClosed);
    this.#receiver.removeAllListeners();
    const { observe, onClosed, peer } = this.#options;
    this.#guard(() => this.#listener?.onClosed());
    onClosed();
    const { code, by } = this.#end ?? { code: statusAbsent, by: 'connection' };
    observe({ kind: 'websocket-closed', peer, code, by, durationMs: performance.now() - this.#openedAt });
  };

  /** An exception of a conversation ends its own WebSocket only. */
  #guard(speak: () => void): void {
    try {
      speak();
    } catch (error) {
      this.#options.observe({ kind: 'operation-failed', operation: 'realtime', error });
      this.close(1011, 'internal error');
    }
  }
}

function ignore(): void {
  // A stream without a listener for errors would end the process.
}

// Octets on their way to one WebSocket's client. Long frames are written in pieces, each when the client has received the one before,
// which shows progress, over HTTP/2 too, and distinguishes a slow client from a stalled one.

/** Length of a piece, which a client must receive within the time limit for stalled responses. */
const pieceBytesMax = 16 * 1024;

type Waiting = { readonly octets: Uint8Array; at: number; readonly onTaken: (() => void) | undefined };

class Outbox {
  readonly #stream: Duplex;
  readonly #onPieceTaken: () => void;
  readonly #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #ends = false;
  /** The client has received something since the last check. */
  #moved = false;
  #stillSinceMs: number | undefined;

  /** @param onPieceTaken called for each piece of what could not be written at once */
  constructor(stream: Duplex, onPieceTaken: () => void) {
    this.#stream = stream;
    this.#onPieceTaken = onPieceTaken;
  }

  /** Octets that the client has not received yet, by their name in streams. */
  get writableLength(): number {
    return this.#waitingBytes + this.#stream.writableLength;
  }

  /** Writes after everything before. @param onTaken called once the client has all of it */
  write(octets: Uint8Array, onTaken?: () => void): void {
    const stream = this.#stream;
    if (this.#waiting.length > 0 || octets.length > pieceBytesMax) {
      this.#waiting.push({ octets, at: 0, onTaken });
      this.#waitingBytes += octets.length;
      this.#pump();
    } else if (onTaken !== undefined || stream.writableLength > 0) {
      stream.write(octets, () => {
        this.#moved = true;
        onTaken?.();
      });
    } else stream.write(octets);
  }

  end(): void {
    this.#ends = true;
    this.#pump();
  }

  /** True if waiting octets have made no progress for longer than the bound, according to earlier checks. */
  stalls(nowMs: number, boundMs: number): boolean {
    if (this.#moved || this.#stillSinceMs === undefined || this.writableLength === 0) {
      this.#moved = false;
      this.#stillSinceMs = nowMs;
      return false;
    }
    return nowMs - this.#stillSinceMs > boundMs;
  }

  readonly #pump = (): void => {
    const stream = this.#stream;
    if (stream.destroyed) {
      this.#waiting.length = 0;
      this.#waitingBytes = 0;
      return;
    }
    for (
      let next = this.#waiting[0];
      next !== undefined && stream.writableLength < pieceBytesMax;
      next = this.#waiting[0]
    ) {
      const { octets, at, onTaken } = next;
      const piece = octets.subarray(at, at + pieceBytesMax);
      next.at += piece.length;
      this.#waitingBytes -= piece.length;
      const isLast = next.at >= octets.length;
      if (isLast) this.#waiting.shift();
      stream.write(piece, () => {
        this.#moved = true;
        this.#pump();
        if (isLast) onTaken?.();
        this.#onPieceTaken();
      });
    }
    if (this.#ends && this.#waiting.length === 0 && !stream.writableEnded) stream.end();
  };
}

/**
 * Waiting octets of one client that are not counted in the memory budget; they go out with the turn. The class below
 * counts the rest, and what the conversation has read for the client. Waiting octets exist before they are counted; if
 * there is no room for them, the conversation sees an infinite queue and ends or pauses.
 */
const uncountedBytesMax = 16 * 1024;

class WaitingMemory implements HeldMemory {
  readonly #stream: Pick<Writable, 'writableLength'>;
  readonly #lease: MemoryLease;
  #readBytes = 0;
  /** The memory budget has no room for the waiting octets. */
  isOver = false;

  constructor(stream: Pick<Writable, 'writableLength'>, lease: MemoryLease) {
    this.#stream = stream;
    this.#lease = lease;
  }

  whenRoom(octets: number, go: () => void): void {
    this.#lease.whenRoom(octets, () => {
      this.#readBytes += octets;
      go();
    });
  }

  /** Sets what the conversation has read. */
  set(octets: number): void {
    this.#readBytes = octets;
    this.count();
  }

  /** Frames are made of what was read, so its octets are counted where they wait. */
  share(octets: Uint8Array | undefined): void {
    this.set(octets?.length ?? 0);
  }

  /** Call it after each write, and after each piece that was received. */
  count(): void {
    const waiting = this.#stream.writableLength;
    const bytes = this.#readBytes + (waiting > uncountedBytesMax ? waiting : 0);
    const more = bytes - this.#lease.bytes;
    this.isOver = more > 0 && !this.#lease.growOrRefuse(more);
    if (this.isOver || more < 0) this.#lease.set(bytes);
  }

  release(): void {
    this.#lease.release();
  }
}
