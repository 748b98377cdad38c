/**
 * A wire between a client and PostgreSQL that a test can hold, delay, cut and lose bytes on, and that counts what passes.
 * It speaks no TLS: the URL that it gives says so.
 */
import { EventEmitter, once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { type Ending, type Listening, listen } from '../../harness/listening.ts';

const syncMessage = 'S'.charCodeAt(0);
const simpleQueryMessage = 'Q'.charCodeAt(0);
const notificationMessage = 'A'.charCodeAt(0);

type Link = {
  readonly client: Socket;
  readonly server: Socket;
  readonly held: Buffer[];
  /** Asks for an answer that passed: each Sync or simple query. */
  asked: number;
  bytesBeforeCut: number;
};

export class Wire {
  /** The same database, over the wire. */
  readonly url: string;
  /** Loses what comes from either side, while connections stay open. */
  lossy = false;
  /** Hangs up on whoever connects. */
  refusing = false;
  /** Loses what the server sends without being asked. */
  withoutNotifications = false;
  /** Told `asked` whenever a Sync or a simple query passed to the server, and `connected` for a new client. */
  readonly events = new EventEmitter();
  readonly #listening: Listening;
  readonly #links = new Set<Link>();
  #holding = false;

  private constructor(listener: Server, listening: Listening, target: URL) {
    this.#listening = listening;
    const url = new URL(target);
    url.port = String(listening.port);
    url.hostname = '127.0.0.1';
    url.searchParams.set('sslmode', 'disable');
    this.url = url.href;
    listener.on('connection', (client) => this.#accept(client, target));
  }

  /** @param context with whose end it closes; without it the caller closes */
  static async before(url: string, context?: Ending): Promise<Wire> {
    const listener = createServer();
    const made = new Wire(listener, await listen(listener), new URL(url));
    context?.after(() => made.close());
    return made;
  }

  get connections(): number {
    return this.#links.size;
  }

  /** Requests for an answer that passed, for each connection that stands, in the order in which they were made. */
  get asked(): readonly number[] {
    return [...this.#links].map((link) => link.asked);
  }

  /** Keeps what the server answers until `release`. */
  hold(): void {
    this.#holding = true;
  }

  release(): void {
    this.#holding = false;
    for (const { held, client } of this.#links) for (const bytes of held.splice(0)) client.write(bytes);
  }

  /** Resolves once so many requests for an answer passed over the connections that stand. */
  async untilAsked(count: number): Promise<void> {
    while (this.asked.reduce((sum, asked) => sum + asked, 0) < count) await once(this.events, 'asked');
  }

  /** Cuts every connection that stands. */
  cut(): void {
    for (const { client } of this.#links) client.destroy();
  }

  /** Cuts each connection that stands once so many octets more have come from the server. */
  cutAfter(bytes: number): void {
    for (const link of this.#links) link.bytesBeforeCut = bytes;
  }

  close(): Promise<void> {
    return this.#listening.close();
  }

  #accept(client: Socket, target: URL): void {
    if (this.refusing) {
      client.destroy();
      return;
    }
    const server = connect(Number(target.port || '5432'), target.hostname);
    // An octet that waits for more waits 40 ms, at each statement.
    for (const socket of [client, server]) socket.setNoDelay();
    const link = { client, server, held: [], asked: 0, bytesBeforeCut: Number.POSITIVE_INFINITY };
    this.#links.add(link);
    this.events.emit('connected');
    server.on('error', () => client.destroy());
    server.on('close', () => client.destroy());
    client.on('close', () => {
      this.#links.delete(link);
      server.destroy();
    });
    const question = messageSplitter(true, (type) => {
      if (type !== syncMessage && type !== simpleQueryMessage) return;
      link.asked += 1;
      this.events.emit('asked');
    });
    client.on('data', (bytes: Buffer) => {
      if (this.lossy) return;
      server.write(bytes);
      question(bytes);
    });
    const answer = messageSplitter(false, (type, message) => {
      if (type !== notificationMessage || !this.withoutNotifications) this.#pass(link, message);
    });
    server.on('data', (bytes: Buffer) => {
      if (!this.lossy) answer(bytes);
    });
  }

  #pass(link: Link, bytes: Buffer): void {
    if (bytes.length > link.bytesBeforeCut) {
      link.client.write(bytes.subarray(0, link.bytesBeforeCut), () => link.client.destroy());
      link.bytesBeforeCut = 0;
      return;
    }
    link.bytesBeforeCut -= bytes.length;
    if (this.#holding) link.held.push(bytes);
    else link.client.write(bytes);
  }
}

/** Calls back with each message of the protocol, whole. The first one of a client has no type. */
function messageSplitter(
  ofClient: boolean,
  onMessage: (type: number | undefined, message: Buffer) => void,
): (bytes: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  let isFirst = ofClient;
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    for (;;) {
      const typeBytes = isFirst ? 0 : 1;
      if (rest.length < typeBytes + 4) return;
      const length = typeBytes + rest.readUInt32BE(typeBytes);
      if (rest.length < length) return;
      onMessage(isFirst ? undefined : rest[0], rest.subarray(0, length));
      rest = rest.subarray(length);
      isFirst = false;
    }
  };
}
