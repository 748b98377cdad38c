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
import type { Duplex } from 'node:stream';
import type { Conversation, ConversationListener, ConversationPeer } from '../../http/message.ts';
import type { MemoryLease } from '../../memory/budget.ts';
import type { Observe } from '../../observe/observation.ts';
import { onEnd } from '../../observe/own-emitter.ts';
import { type Compression, createMessageInflater } from './agree-compression.ts';
import type { Fleet } from './fleet.ts';
import { closeFrame, failureCodeOf, pingFrame, pongFrame } from './frames.ts';

import { Outbox, uncountedBytesMax, WaitingMemory } from './outbox.ts';

import { Receiver } from './ws-exports.ts';

export type WireOptions = {
  readonly stream: Duplex;
  readonly cut: () => void;
  readonly compression: Compression;
  readonly limits: {
    readonly realtimeMessageBytesMax: number;
    readonly realtimeBufferBytesMax: number;
    readonly realtimeCloseMs: number;
    readonly answerStallTimeoutMs: number;
  };
  readonly fleet: Fleet;
  /** For what waits for the client, and for what the conversation reads for it. */
  readonly lease: MemoryLease;
  readonly observe: Observe;
  readonly onClosed: () => void;
  readonly peer: string;
};

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
  readonly #options: WireOptions;
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

  constructor(options: WireOptions) {
    const { stream, compression, limits } = options;
    this.#options = options;
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
    this.memory = new WaitingMemory(this.#outbox, options.lease);
    this.#listen();
  }

  /** The response was written: opens the conversation, then reads frames. */
  open(conversation: Conversation, head: Uint8Array): void {
    const { compression, fleet } = this.#options;
    this.#stopPings = fleet.ping(this);
    this.#guard(() => {
      this.#listener = conversation.open(this);
    });
    if (compression.complaint !== undefined) this.close(1002, compression.complaint);
    if (head.length > 0) this.#onData(Buffer.from(head.buffer, head.byteOffset, head.length));
    if (this.#stream.destroyed) queueMicrotask(this.#onStreamClosed);
  }

  send(message: string | Uint8Array): boolean {
    if (this.#mode !== 'open') return false;
    const stream = this.#stream;
    const { compression, fleet } = this.#options;
    const frame = fleet.frames.ofText(message, compression.sentWindowBits);
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
    this.#options.cut();
  }

  /**
   * A ping is due; a client that did not answer the previous one is gone (a half-open connection has no other sign).
   */
  beat(): void {
    if (this.#pinged) {
      this.#beginClosing({ code: statusAbnormal, by: 'connection' });
      this.#options.cut();
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
    this.#closeTimer = setTimeout(this.#options.cut, this.#options.limits.realtimeCloseMs).unref();
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
