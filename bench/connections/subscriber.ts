/** One client of a WebSocket over HTTP/1.1, as cheap as one can be: it asks, counts what comes, and answers pings. */
import { connect, type Socket } from 'node:net';
import { closeOpcode, FrameCounter, pingOpcode } from './frame-count.ts';

const headBytesMax = 16_384;
/** Clients mask what they send; a mask of zeros leaves it as it is (RFC 6455 §5.3). */
const emptyPong = Buffer.from([0x8a, 0x80, 0, 0, 0, 0]);

export type SubscriberPlan = {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  /** Field lines beyond those of the handshake, each ended by CRLF. */
  readonly fieldLines: string;
  /** The text that subscribes; the first text that comes back is the answer to it, and is not counted. */
  readonly subscribe: string;
};

export type SubscriberEvents = {
  readonly onSubscribed: () => void;
  /** Texts that came in one read. */
  readonly onTexts: (count: number) => void;
  /** Anything that ends it but `end`. */
  readonly onFault: (fault: string) => void;
};

export class Subscriber {
  readonly #socket: Socket;
  readonly #events: SubscriberEvents;
  readonly #subscribe: string;
  readonly #frames = new FrameCounter();
  #head = '';
  #state: 'asking' | 'subscribing' | 'open' | 'ended' = 'asking';

  /** @param buffer every read of every subscriber goes through it */
  constructor(plan: SubscriberPlan, buffer: Uint8Array, events: SubscriberEvents) {
    this.#events = events;
    this.#subscribe = plan.subscribe;
    const { host, port } = plan;
    this.#socket = connect({
      host,
      port,
      onread: { buffer, callback: (bytes) => this.#take(buffer, bytes) },
    });
    this.#socket.setNoDelay(true);
    this.#socket.write(
      `GET ${plan.path} HTTP/1.1\r\nHost: ${host}:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n${plan.fieldLines}\r\n`,
    );
    this.#socket.on('error', (error) => this.#fault(error.message));
    this.#socket.on('close', () => this.#fault('closed'));
  }

  get textBytes(): number {
    return this.#frames.textBytes;
  }

  end(): void {
    this.#state = 'ended';
    this.#socket.destroy();
  }

  #take(buffer: Uint8Array, bytes: number): boolean {
    const from = this.#state === 'asking' ? this.#readHead(buffer, bytes) : 0;
    if (from === bytes || this.#state === 'ended') return true;
    const before = this.#frames.texts;
    const control = this.#frames.take(buffer, from, bytes);
    let texts = this.#frames.texts - before;
    if (texts > 0 && this.#state === 'subscribing') {
      this.#state = 'open';
      texts -= 1;
      this.#events.onSubscribed();
    }
    if (texts > 0) this.#events.onTexts(texts);
    if (control === pingOpcode) this.#socket.write(emptyPong);
    if (control === closeOpcode) this.#fault('the server closed it');
    return true;
  }

  /** @returns where the first frame begins */
  #readHead(buffer: Uint8Array, bytes: number): number {
    const before = this.#head.length;
    this.#head += Buffer.from(buffer.buffer, buffer.byteOffset, bytes).toString('latin1');
    const end = this.#head.indexOf('\r\n\r\n');
    if (end < 0 && this.#head.length < headBytesMax) return bytes;
    if (!this.#head.startsWith('HTTP/1.1 101 ')) {
      this.#fault(`answered ${this.#head.slice(0, 300)}`);
      return bytes;
    }
    this.#state = 'subscribing';
    this.#socket.write(maskedText(this.#subscribe));
    this.#head = '';
    return end + 4 - before;
  }

  #fault(fault: string): void {
    if (this.#state === 'ended') return;
    this.end();
    this.#events.onFault(fault);
  }
}

/** @param text shorter than 126 octets */
function maskedText(text: string): Uint8Array {
  const content = Buffer.from(text);
  return Buffer.concat([Buffer.from([0x81, 0x80 | content.length, 0, 0, 0, 0]), content]);
}
