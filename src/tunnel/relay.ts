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
import type { TunnelEnd } from '../observe/observation.ts';
import {
  type BufferedFlow,
  canReadInto,
  createRelayMemory,
  findReadBuffer,
  flowBuffered,
  flowStreamed,
} from './flow.ts';
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

type RelaysOptions = {
  readonly tunnelIdleMs: number;
  readonly tunnelHalfClosedMs: number;
  readonly monotonic: () => number;
};

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
export function createRelays({ tunnelIdleMs, tunnelHalfClosedMs, monotonic }: RelaysOptions): Relays {
  const relays = new Set<Relay>();
  const shortest = Math.min(tunnelIdleMs, tunnelHalfClosedMs) / looksPerIdleTime;
  const intervalMs = Math.max(lookIntervalMsMin, Math.min(lookIntervalMsMax, shortest));
  let buffered: BufferedFlow | undefined;
  let timer: NodeJS.Timeout | undefined;

  /** Created with the first relay: a program without tunnels pays nothing. */
  function bufferedFlow(): BufferedFlow | undefined {
    const parts = findReadBuffer();
    return parts === undefined ? undefined : { parts, memory: createRelayMemory(), monotonic };
  }

  function look(): void {
    const nowMs = monotonic();
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
