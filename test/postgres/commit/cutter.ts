/**
 * A proxy before PostgreSQL that breaks one connection at a chosen octet. What was on its way to the server then is lost, or
 * reaches it all the same, or reaches it later than anyone expects.
 */
import { EventEmitter } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { type Ending, type Listening, listen } from '../../harness/listening.ts';

/**
 * `lost`: the server sees the connection break too. `late`: it keeps the connection, and gets the rest when `deliver` is called.
 * For octets that the server sends, both mean that the client is cut off after so many.
 */
export type Cut = {
  readonly direction: 'to server' | 'to client';
  readonly afterBytes: number;
  readonly rest: 'lost' | 'late';
};

type Link = {
  readonly client: Socket;
  readonly server: Socket;
  readonly passed: Record<Cut['direction'], number>;
};

export class Cutter {
  readonly url: string;
  /** Told `cut`. */
  readonly events = new EventEmitter();
  readonly #listening: Listening;
  readonly #target: URL;
  readonly #links = new Set<Link>();
  #cut: Cut | undefined;
  #late: { readonly server: Socket; readonly chunks: Buffer[] }[] = [];

  private constructor(listener: Server, listening: Listening, target: URL) {
    this.#listening = listening;
    this.#target = target;
    const url = new URL(target);
    url.hostname = '127.0.0.1';
    url.port = String(listening.port);
    this.url = url.href;
    listener.on('connection', (client) => this.#accept(client));
  }

  /** @param context with whose end it closes; without it the caller closes */
  static async before(url: string, context?: Ending): Promise<Cutter> {
    const listener = createServer();
    const made = new Cutter(listener, await listen(listener), new URL(url));
    context?.after(() => made.close());
    return made;
  }

  /** The connection that stands is cut once so many octets more have passed. */
  arm(cut: Cut): void {
    this.#cut = cut;
    this.#passed();
  }

  disarm(): void {
    this.#cut = undefined;
  }

  countFromHere(): void {
    this.#passed();
  }

  /** Octets that passed over the connection that stands since `countFromHere`. */
  passedBytes(direction: Cut['direction']): number {
    let sum = 0;
    for (const { passed } of this.#links) sum += passed[direction];
    return sum;
  }

  /** The server gets what is late, and then the end of the connection. */
  async deliver(): Promise<void> {
    const late = this.#late;
    this.#late = [];
    for (const { server, chunks } of late) {
      // The server may have ended the session meanwhile.
      if (server.closed) continue;
      for (const chunk of chunks) server.write(chunk);
      server.end();
      // A server that has ended the session meanwhile resets the connection: `once` of node:events would reject with that.
      await new Promise((resolve) => server.once('close', resolve));
    }
  }

  async close(): Promise<void> {
    await this.deliver();
    await this.#listening.close();
  }

  #passed(): void {
    for (const link of this.#links) {
      link.passed['to server'] = 0;
      link.passed['to client'] = 0;
    }
  }

  #accept(client: Socket): void {
    const server = connect(Number(this.#target.port), this.#target.hostname);
    const link: Link = { client, server, passed: { 'to server': 0, 'to client': 0 } };
    this.#links.add(link);
    server.on('error', () => server.destroy());
    client.on('data', (bytes: Buffer) => this.#pass(link, 'to server', bytes));
    server.on('data', (bytes: Buffer) => this.#pass(link, 'to client', bytes));
    client.on('close', () => {
      if (this.#links.delete(link)) server.destroy();
    });
    server.on('close', () => client.destroy());
  }

  #pass(link: Link, direction: Cut['direction'], bytes: Buffer): void {
    if (!this.#links.has(link)) return;
    const to = direction === 'to server' ? link.server : link.client;
    const cut = this.#cut;
    const room = (cut?.afterBytes ?? 0) - link.passed[direction];
    if (cut === undefined || cut.direction !== direction || bytes.length < room) {
      link.passed[direction] += bytes.length;
      to.write(bytes);
      return;
    }
    this.#cut = undefined;
    this.#links.delete(link);
    const first = bytes.subarray(0, Math.max(0, room));
    if (cut.rest === 'late') {
      const chunks = direction === 'to server' ? [bytes.subarray(first.length)] : [];
      if (direction === 'to server') link.server.write(first);
      this.#late.push({ server: link.server, chunks });
      link.client.on('data', (more: Buffer) => chunks.push(more));
      link.client.destroy();
    } else {
      to.write(first, () => {
        link.server.destroy();
        link.client.destroy();
      });
    }
    this.events.emit('cut');
  }
}
