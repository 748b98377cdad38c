/** One client of a proxy, as cheap as one can be: CONNECT, the header section of the answer, and then octets that are counted. */
import { connect, type Socket } from 'node:net';

const headBytesMax = 16_384;

export type Route = {
  readonly host: string;
  readonly port: number;
  /** `host:port` that CONNECT names; undefined where the destination is connected to without a proxy. */
  readonly target?: string;
  /** Each ended by CRLF. */
  readonly fieldLines: string;
};

export type TunnelEvents = {
  readonly onOpen: (client: TunnelClient) => void;
  readonly onOctets: (count: number) => void;
  /** Anything that ends it but `end`. */
  readonly onFault: (fault: string) => void;
};

export class TunnelClient {
  readonly #socket: Socket;
  readonly #events: TunnelEvents;
  #head = '';
  #state: 'asking' | 'open' | 'ended' = 'asking';

  /** @param buffer every read of every client goes through it */
  constructor({ host, port, target, fieldLines }: Route, buffer: Uint8Array, events: TunnelEvents) {
    this.#events = events;
    const callback = (bytes: number): boolean => this.#take(buffer, bytes);
    this.#socket = connect({ host, port, onread: { buffer, callback } });
    this.#socket.setNoDelay(true);
    this.#socket.on('error', (error) => this.#fault(error.message));
    this.#socket.on('close', () => this.#fault('closed'));
    if (target === undefined) this.#socket.once('connect', () => this.#open());
    else this.#socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${fieldLines}\r\n`);
  }

  end(): void {
    this.#state = 'ended';
    this.#socket.destroy();
  }

  #open(): void {
    if (this.#state !== 'asking') return;
    this.#state = 'open';
    this.#events.onOpen(this);
  }

  #take(buffer: Uint8Array, bytes: number): boolean {
    if (this.#state === 'open') this.#events.onOctets(bytes);
    else if (this.#state === 'asking') this.#readHead(buffer, bytes);
    return true;
  }

  #readHead(buffer: Uint8Array, bytes: number): void {
    const shown = Math.min(bytes, headBytesMax);
    this.#head += Buffer.from(buffer.buffer, buffer.byteOffset, shown).toString('latin1');
    if (this.#head.indexOf('\r\n\r\n') < 0 && this.#head.length < headBytesMax) return;
    if (/^HTTP\/1\.[01] 200 /.test(this.#head)) this.#open();
    else this.#fault(`answered ${this.#head.slice(0, 300)}`);
  }

  #fault(fault: string): void {
    if (this.#state === 'ended') return;
    this.end();
    this.#events.onFault(fault);
  }
}
