/**
 * Connects a client and a destination until both have ended (§4.10.2). The end of one side is passed on as an end, so
 * that the other may still answer; a reset is passed on as a reset (RFC 9113 §8.5); an idle relay is closed.
 *
 * Modes: *open*; *half closed*, when one side has ended; *over*, entered once whatever the order of events: when both
 * sides have closed after their ends, when one closes without an end, or by `cut`. Then both are destroyed or closing,
 * and `onOver` is called.
 */

import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Settings } from '../config/settings.ts';
import type { TunnelEnd } from '../observe/observation.ts';
import { ignoreError, onEnd, ownEmitter } from '../observe/own-emitter.ts';
import type { ClientSide } from './proxy-call.ts';

export type RelayCall = {
  readonly client: ClientSide;
  /** Connected, and half-open. */
  readonly destination: Socket;
  readonly spend: (bytes: number) => boolean;
  readonly onOver: (why: TunnelEnd, sentBytes: number, receivedBytes: number) => void;
};

export class Relay {
  readonly #client: Duplex;
  readonly #resetClient: () => void;
  readonly #destination: Socket;
  readonly #spend: (bytes: number) => boolean;
  readonly #onOver: RelayCall['onOver'];
  #sentBytes = 0;
  #receivedBytes = 0;
  #isOver = false;
  #seenBytes = -1;
  #quietSinceMs = 0;

  constructor({ client, destination, spend, onOver }: RelayCall) {
    this.#client = client.duplex;
    this.#resetClient = client.reset;
    this.#destination = destination;
    this.#spend = spend;
    this.#onOver = onOver;
  }

  /** @param buffered undefined: this version of Node cannot read into given memory */
  start(head: Uint8Array, buffered: BufferedFlow | undefined): void {
    const client = this.#client;
    const destination = this.#destination;
    this.#watch(client, 'client-reset');
    this.#watch(destination, 'destination-reset');
    if (destination.destroyed) this.cut('destination-reset');
    else if (client.destroyed) this.cut('client-reset');
    if (this.#isOver) return;
    const onSent = (bytes: number): void => {
      this.#sentBytes += bytes;
      if (!this.#spend(bytes)) this.cut('bytes');
    };
    const onReceived = (bytes: number): void => {
      this.#receivedBytes += bytes;
      if (!this.#spend(bytes)) this.cut('bytes');
    };
    if (head.length > 0) {
      destination.write(head);
      onSent(head.length);
    }
    if (buffered !== undefined && canReadInto(client) && canReadInto(destination)) {
      flowBuffered(buffered, client, destination, onSent);
      flowBuffered(buffered, destination, client, onReceived);
    } else {
      flowStreamed(client, destination, onSent);
      flowStreamed(destination, client, onReceived);
    }
  }

  /** Ends it now. With `idle`, what was written still arrives; otherwise both sides see a failure. */
  cut(why: TunnelEnd): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const client = this.#client;
    const destination = this.#destination;
    if (why === 'idle' && client.writableLength === 0 && destination.writableLength === 0) {
      client.destroy();
      destination.destroy();
    } else {
      if (isEnding(client)) client.destroy();
      else if (!client.destroyed) this.#resetClient();
      if (isEnding(destination)) destination.destroy();
      else if (!destination.destroyed) destination.resetAndDestroy();
    }
    this.#tell(why);
  }

  /** Ends it if nothing was carried for its time. */
  look(nowMs: number, idleMs: number, halfClosedMs: number): void {
    const bytes = this.#sentBytes + this.#receivedBytes;
    if (bytes !== this.#seenBytes) {
      this.#seenBytes = bytes;
      this.#quietSinceMs = nowMs;
      return;
    }
    const isHalfClosed = this.#client.writableEnded || this.#destination.writableEnded;
    if (nowMs - this.#quietSinceMs >= (isHalfClosed ? halfClosedMs : idleMs)) this.cut('idle');
  }

  #watch(side: Duplex, broken: 'client-reset' | 'destination-reset'): void {
    // Never removed: an error after the end is ignored, and one without a listener would end the program.
    side.on('error', () => this.cut(broken));
    side.on('aborted', () => this.cut(broken));
    side.on('close', () => {
      if (!side.readableEnded || !side.writableFinished) this.cut(broken);
      else if (this.#client.closed && this.#destination.closed) this.#end();
    });
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#tell('ended');
  }

  #tell(why: TunnelEnd): void {
    this.#onOver(why, this.#sentBytes, this.#receivedBytes);
  }
}

/**
 * A socket whose end is not sent yet cannot be reset: libuv refuses (uv_tcp_close_reset gives EINVAL), and Node has
 * dropped the handle by then, which stays open for good.
 */
function isEnding(side: Duplex): boolean {
  return side instanceof Socket && side.writableEnded && !side.writableFinished;
}

type Relays = {
  /** Starts the relay. `cut` of the result ends it from outside. */
  readonly join: (call: RelayCall) => { readonly cut: (why: TunnelEnd) => void };
};

const looksPerIdleTime = 10;
const lookIntervalMsMin = 10;
const lookIntervalMsMax = 5000;

/**
 * The relays of a process: they share memory, and one timer that closes idle ones (§8). A timer for each would be set
 * anew with every chunk; this one costs a comparison a relay, ten times in the shortest of their timeouts.
 */
export function createRelays({
  tunnelIdleMs,
  tunnelHalfClosedMs,
}: Pick<Settings, 'tunnelIdleMs' | 'tunnelHalfClosedMs'>): Relays {
  const relays = new Set<Relay>();
  const shortest = Math.min(tunnelIdleMs, tunnelHalfClosedMs) / looksPerIdleTime;
  const intervalMs = Math.max(lookIntervalMsMin, Math.min(lookIntervalMsMax, shortest));
  let buffered: BufferedFlow | undefined;
  let timer: NodeJS.Timeout | undefined;

  /** Created with the first relay: a program without tunnels pays nothing. */
  function bufferedFlow(): BufferedFlow | undefined {
    const parts = findReadBuffer();
    return parts === undefined ? undefined : { parts, memory: createRelayMemory() };
  }

  function look(): void {
    const nowMs = performance.now();
    for (const relay of relays) relay.look(nowMs, tunnelIdleMs, tunnelHalfClosedMs);
  }

  return {
    join(call) {
      buffered ??= bufferedFlow();
      const relay = new Relay({
        ...call,
        onOver(why, sentBytes, receivedBytes) {
          relays.delete(relay);
          if (relays.size === 0) {
            clearInterval(timer);
            timer = undefined;
          }
          call.onOver(why, sentBytes, receivedBytes);
        },
      });
      relays.add(relay);
      timer ??= setInterval(look, intervalMs).unref();
      relay.start(call.client.head, buffered);
      return relay;
    },
  };
}

// One direction of a relay: writes what a source reads to a sink, pauses reading while the sink is behind, and ends the
// sink at the end of the source. The relay handles errors and closing. Plain sockets use the memory that all relays
// share; streams with TLS or HTTP/2 on either side use Node's buffers.

type OnCarried = (bytes: number) => void;

/** A sink that took longer is slow, and gets the smaller buffers until it is not. */
const slowMs = 100;
/** Full reads in a row before the larger buffers are used. */
const fullReads = 2;

type BufferedFlow = {
  readonly parts: NonNullable<ReturnType<typeof findReadBuffer>>;
  readonly memory: RelayMemory;
};

/** Connects plain sockets. `head` goes first, then what the source has already buffered. */
function flowBuffered(
  { parts, memory }: BufferedFlow,
  source: Socket,
  sink: Socket,
  onCarried: OnCarried,
): void {
  let waiting: Uint8Array | undefined;
  let waitingSinceMs = 0;
  let full = 0;
  const onWritten = (): void => {
    // Writes that the kernel accepted at once also call back, a moment later.
    if (waiting === undefined || sink.writableLength > 0) return;
    memory.giveBack(waiting);
    waiting = undefined;
    if (performance.now() - waitingSinceMs > slowMs) full = 0;
    source.resume();
  };
  const onOctets = (bytes: number): boolean => {
    if (sink.destroyed || sink.writableEnded) return true;
    full = bytes >= readBytesMin ? full + 1 : 0;
    const stage = memory.stage(bytes);
    sink.write(bytes === stage.length ? stage : stage.subarray(0, bytes), onWritten);
    if (sink.writableLength === 0) memory.giveBack(stage);
    else {
      waiting = stage;
      waitingSinceMs = performance.now();
    }
    onCarried(bytes);
    return waiting === undefined;
  };
  // Octets that arrived before the destination was connected.
  for (let early = readAll(source); early !== undefined; early = readAll(source)) {
    sink.write(early);
    onCarried(early.length);
  }
  readInto(parts, source, { onOctets, next: () => (full < fullReads ? memory.small : memory.large) });
  onEnd(source, () => sink.end());
  source.resume();
}

/** Connects any streams. */
function flowStreamed(source: Duplex, sink: Duplex, onCarried: OnCarried): void {
  source.on('data', (chunk: Uint8Array) => {
    if (sink.destroyed || sink.writableEnded) return;
    if (!sink.write(chunk)) source.pause();
    onCarried(chunk.length);
  });
  sink.on('drain', () => source.resume());
  // A stream that is reset with CANCEL ends first and reports its abort in the same turn: that end is not passed on.
  onEnd(source, () => setImmediate(() => void (sink.destroyed || sink.end())));
  source.resume();
}

function readAll(source: Socket): Uint8Array | undefined {
  const chunk: unknown = source.read();
  return chunk instanceof Uint8Array ? chunk : undefined;
}

/**
 * Lengths of reads and buffers, the larger for relays that fill the smaller. All relays of a process read into the same
 * memory, because each turn of the event loop that reads copies the octets to a buffer and writes it before anything
 * else is read. A buffer that the kernel accepted whole is free at once; only a slow client or destination keeps it
 * until it is written. So idle tunnels hold no memory.
 */
const readBytesMin = 64 * 1024;
const readBytesMax = 256 * 1024;

const stageBytes = [4 * 1024, readBytesMin, readBytesMax] as const;
/** Free buffers of each length to keep; more are left to the garbage collector. */
const sparesMax = 8;

type RelayMemory = {
  /** Memory for reads: the beginning of one shared buffer. */
  readonly small: Uint8Array;
  readonly large: Uint8Array;
  /** A buffer with the first octets of the last read. */
  readonly stage: (bytes: number) => Uint8Array;
  readonly giveBack: (stage: Uint8Array) => void;
};

function createRelayMemory(): RelayMemory {
  const large = Buffer.allocUnsafeSlow(readBytesMax);
  const spares = new Map<number, Uint8Array[]>(stageBytes.map((length) => [length, []]));
  return {
    small: large.subarray(0, readBytesMin),
    large,
    stage(bytes) {
      const length = stageBytes.find((each) => each >= bytes) ?? readBytesMax;
      const stage = spares.get(length)?.pop() ?? Buffer.allocUnsafeSlow(length);
      large.copy(stage, 0, 0, bytes);
      return stage;
    },
    giveBack(stage) {
      const kept = spares.get(stage.length);
      if (kept !== undefined && kept.length < sparesMax) kept.push(stage);
    },
  };
}

type ReadInto = {
  /**
   * Called with the number of octets at the start of the given memory, which are lost unless copied before it returns.
   * False: pause until `resume`.
   */
  readonly onOctets: (bytes: number) => boolean;
  readonly next: () => Uint8Array;
};

type ReadBufferInternals = { readonly buffer: symbol; readonly callback: symbol; readonly generator: symbol };

type BufferedHandle = { useUserBuffer(memory: Uint8Array): void };

/**
 * Finds Node's internals for reading a TCP socket into existing memory; undefined if this version lacks any of them,
 * and the relay then reads in the usual way. Node offers this (`onread` of net.connect) for sockets that it opens but
 * not for those that it accepts.
 *
 * Reason: Node allocates 64 KiB for each read and leaves them to the garbage collector. Gigabytes through a relay on
 * loopback for each second of processor time, in one run on two shared cores: pipe() 0.66, 'data' and write() 0.6, this
 * with 256 KiB 1.3, squid 0.8.
 */
export function findReadBuffer(): ReadBufferInternals | undefined {
  const symbols = Object.getOwnPropertySymbols(ownEmitter(new Socket(), ignoreError));
  const named = (name: string) => symbols.find(({ description }) => description === name);
  const [buffer, callback, generator] = [named('kBuffer'), named('kBufferCb'), named('kBufferGen')];
  if (buffer === undefined || callback === undefined || generator === undefined) return undefined;
  return { buffer, callback, generator };
}

/** True for a plain socket whose reads can be redirected; false for TLS and HTTP/2. */
function canReadInto(stream: Duplex): stream is Socket {
  return stream instanceof Socket && !('encrypted' in stream) && handleOf(stream) !== undefined;
}

/**
 * Redirects further reads into `next()`; the socket emits no more `data`, but still `end`. Its buffer must be empty.
 */
function readInto(parts: ReadBufferInternals, socket: Socket, { onOctets, next }: ReadInto): void {
  const memory = next();
  Object.assign(socket, { [parts.buffer]: memory, [parts.callback]: onOctets, [parts.generator]: next });
  handleOf(socket)?.useUserBuffer(memory);
}

function handleOf(socket: Socket): BufferedHandle | undefined {
  const handle: unknown = Reflect.get(socket, '_handle');
  if (typeof handle !== 'object' || handle === null || !('useUserBuffer' in handle)) return undefined;
  return typeof handle.useUserBuffer === 'function' ? (handle as BufferedHandle) : undefined;
}
