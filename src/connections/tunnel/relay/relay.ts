/**
 * Joins a client and a destination until both have ended (§4.10, rule 2). Each side's end is passed on as an end, so that the other may still
 * answer; a reset is passed on as a reset (RFC 9113 §8.5); what carries nothing for its time, and what is cut from outside, is closed.
 *
 * Modes: *open*; *half closed*, when one side has ended; *over*. The last is entered once, whatever order events come in: by both sides
 * having closed after their ends, by one closing without, or by `cut`. Then both are destroyed or closing, and `onOver` is called.
 */
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TunnelEnd } from '../../../observe/observation.ts';
import type { ClientSide } from '../../proxy.ts';
import { type BufferedFlow, flowBuffered, flowStreamed } from './flow.ts';
import { canReadInto } from './read-buffer.ts';

export type RelayCall = {
  readonly client: ClientSide;
  /** Connected, and half-open. */
  readonly destination: Socket;
  /** False: no more may be carried. */
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
  /** As of the last look of the sweep. */
  #seenBytes = -1;
  #quietSinceMs = 0;

  constructor({ client, destination, spend, onOver }: RelayCall) {
    this.#client = client.duplex;
    this.#resetClient = client.reset;
    this.#destination = destination;
    this.#spend = spend;
    this.#onOver = onOver;
  }

  /** @param buffered undefined: this Node cannot read into memory that is given */
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

  /** Ends it now. `idle` leaves what was written to arrive; otherwise both sides see that something broke. */
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

  /** Called now and then: ends it when nothing was carried for its time. */
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
    // Stays for good: an error after the end is no news, and one without a listener would end the program.
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
 * A socket whose end is still to be sent cannot be reset: libuv refuses (uv_tcp_close_reset gives EINVAL), and Node has let go of the handle
 * by then, which stays open for good.
 */
function isEnding(side: Duplex): boolean {
  return side instanceof Socket && side.writableEnded && !side.writableFinished;
}
