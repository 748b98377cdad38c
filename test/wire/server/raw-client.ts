/**
 * A client that sends octets as given and reads answers by their framing (RFC 9112 §6), so that a test sees exactly what
 * is on the wire. It knows Content-Length, chunked, and answers that end with the connection.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

export type RawAnswer = {
  readonly status: number;
  readonly version: string;
  /** Lower-case names. */
  readonly fields: ReadonlyMap<string, string>;
  readonly head: string;
  readonly body: string;
};

const deadlineMs = 10_000;

export class RawClient {
  readonly socket: Socket;
  /** How the connection ended: `end` is a FIN, `reset` an RST. */
  readonly closed: Promise<'end' | 'reset'>;
  #buffer = '';
  #ended = false;
  #error: Error | undefined;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      this.#buffer += text;
    });
    socket.on('error', (error) => {
      this.#error = error;
    });
    this.closed = new Promise((resolve) => {
      socket.on('end', () => {
        this.#ended = true;
        resolve('end');
      });
      socket.on('close', () => {
        this.#ended = true;
        resolve(this.#error === undefined ? 'end' : 'reset');
      });
    });
  }

  get received(): string {
    return this.#buffer;
  }

  send(text: string): this {
    this.socket.write(text, 'latin1');
    return this;
  }

  /** The next answer, 1xx included. `headOnly` for the answer to HEAD. */
  async answer(options: { headOnly?: boolean } = {}): Promise<RawAnswer> {
    const head = await this.#take((buffer) => {
      const at = buffer.indexOf('\r\n\r\n');
      return at < 0 ? undefined : at + 4;
    });
    const [statusLine = '', ...lines] = head.slice(0, -4).split('\r\n');
    const fields = new Map<string, string>();
    for (const line of lines) {
      const colon = line.indexOf(':');
      const name = line.slice(0, colon).toLowerCase();
      const value = line.slice(colon + 1).trim();
      const before = fields.get(name);
      if (before !== undefined && name !== 'www-authenticate')
        throw new Error(`the field ${name} came twice`);
      fields.set(name, before === undefined ? value : `${before}, ${value}`);
    }
    const status = Number(statusLine.slice(9, 12));
    const body = await this.#body(status, fields, options.headOnly === true);
    return { status, version: statusLine.slice(0, 8), fields, head, body };
  }

  /** Waits until the buffer holds the text, and takes everything up to its end. */
  async until(text: string): Promise<string> {
    return this.#take((buffer) => {
      const at = buffer.indexOf(text);
      return at < 0 ? undefined : at + text.length;
    });
  }

  destroy(): void {
    this.socket.destroy();
  }

  async #body(status: number, fields: ReadonlyMap<string, string>, headOnly: boolean): Promise<string> {
    if (headOnly || status === 204 || status === 304 || status < 200) return '';
    if (fields.get('transfer-encoding') === 'chunked') return this.#chunked();
    const length = fields.get('content-length');
    if (length !== undefined)
      return this.#take((buffer) => (buffer.length >= Number(length) ? Number(length) : undefined));
    await this.closed;
    const rest = this.#buffer;
    this.#buffer = '';
    return rest;
  }

  async #chunked(): Promise<string> {
    let body = '';
    for (;;) {
      const line = await this.until('\r\n');
      const size = Number.parseInt(line, 16);
      const chunk = await this.#take((buffer) => (buffer.length >= size + 2 ? size + 2 : undefined));
      if (size === 0) return body;
      body += chunk.slice(0, -2);
    }
  }

  async #take(find: (buffer: string) => number | undefined): Promise<string> {
    const signal = AbortSignal.timeout(deadlineMs);
    for (;;) {
      const end = find(this.#buffer);
      if (end !== undefined) {
        const taken = this.#buffer.slice(0, end);
        this.#buffer = this.#buffer.slice(end);
        return taken;
      }
      if (this.#ended) throw new Error(`the connection ended after ${JSON.stringify(this.#buffer)}`);
      await Promise.race([once(this.socket, 'data', { signal }), this.closed]);
    }
  }
}

/** @param localAddress another loopback address to come from */
export async function openRaw(port: number, localAddress = '127.0.0.1'): Promise<RawClient> {
  const socket = connect({ host: '127.0.0.1', port, localAddress, allowHalfOpen: true, noDelay: true });
  await once(socket, 'connect');
  return new RawClient(socket);
}

/** Over TLS, offering HTTP/1.1 alone. */
export async function openRawTls(port: number): Promise<RawClient> {
  const socket = connectTls({
    ...{ host: '127.0.0.1', port, allowHalfOpen: true, ALPNProtocols: ['http/1.1'] },
    // The certificate is one of the test's own making.
    rejectUnauthorized: false,
  });
  socket.setNoDelay(true);
  await once(socket, 'secureConnect');
  return new RawClient(socket);
}
