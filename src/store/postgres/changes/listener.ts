/**
 * A connection that LISTENs, with a proof that notifications arrive. Behind a pooler in transaction mode LISTEN succeeds, but nothing ever
 * arrives. So once it listens, a different session sends a word that must arrive; the listening session would receive its own word even
 * there, with the reply to its statement. The proof holds from the word's arrival, however late, until the connection is lost.
 */
import { randomBytes } from 'node:crypto';
import { quoteName } from '../../quote-name.ts';
import type { Address } from '../connection/address.ts';
import type { Connection } from '../connection/connection.ts';
import { createConnection } from '../connection/connection.ts';
import { openSession } from '../schema/session.ts';

export type ListenerOptions = {
  readonly address: Address;
  readonly channel: string;
  readonly connectTimeoutMs: number;
  /** Called when LISTEN is in effect: at first, and whenever the connection is made again. */
  readonly onListening: () => void;
  readonly onPayload: (payload: string) => void;
  /** Called when it is first known whether notifications arrive, and when that changes. */
  readonly onHearing: (hears: boolean) => void;
};

export type Listener = { close(): Promise<void> };

/** Time for the word to arrive before the listener assumes that none does. */
const proofMs = 1_000;
/** Without statements a connection would not notice a lost network. */
const heartbeatMs = 5_000;

export function createListener(options: ListenerOptions): Listener {
  return new ProvenListener(options);
}

class ProvenListener implements Listener {
  readonly #options: ListenerOptions;
  readonly #connection: Connection;
  readonly #heartbeat: NodeJS.Timeout;
  #word = '';
  #isSaid = false;
  #hears: boolean | undefined;
  #doubt: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: ListenerOptions) {
    this.#options = options;
    const { address, channel, connectTimeoutMs } = options;
    this.#connection = createConnection({
      address,
      name: 'comity listen',
      connectTimeoutMs,
      timeoutMs: connectTimeoutMs,
      onConnected: () => this.#listen(),
      onLost: () => this.#hearing(false),
      onNotification: (from, payload) => {
        if (from === channel) this.#notified(payload);
      },
    });
    this.#heartbeat = setInterval(() => this.#beat(), heartbeatMs);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#heartbeat);
    clearTimeout(this.#doubt);
    await this.#connection.close();
  }

  #listen(): void {
    this.#word = `hello ${randomBytes(8).toString('hex')}`;
    this.#isSaid = false;
    clearTimeout(this.#doubt);
    const sql = `LISTEN ${quoteName(this.#options.channel)}`;
    this.#connection.send([{ sql, values: [], prepared: false }]).then(
      () => {
        if (this.#closed) return;
        this.#options.onListening();
        this.#prove();
      },
      // The connection was lost and will listen again, or the role may not LISTEN.
      () => this.#hearing(false),
    );
  }

  #prove(): void {
    const word = this.#word;
    sayFromElsewhere(this.#options, word).then(
      () => {
        if (this.#closed || word !== this.#word) return;
        this.#isSaid = true;
        this.#doubt = setTimeout(() => {
          if (this.#hears !== true) this.#hearing(false);
        }, proofMs);
      },
      // Without the word there is no proof: the next heartbeat tries again.
      () => this.#hearing(false),
    );
  }

  #notified(payload: string): void {
    if (payload === this.#word) this.#hearing(true);
    else this.#options.onPayload(payload);
  }

  #hearing(hears: boolean): void {
    if (this.#hears === hears || this.#closed) return;
    this.#hears = hears;
    this.#options.onHearing(hears);
  }

  #beat(): void {
    if (!this.#connection.connected) return;
    if (!this.#isSaid) this.#prove();
    this.#connection.send([{ sql: 'SELECT 1', values: [], prepared: false }]).catch(() => {
      // `onLost` reports it.
    });
  }
}

async function sayFromElsewhere(options: ListenerOptions, word: string): Promise<void> {
  const { address, channel, connectTimeoutMs } = options;
  const elsewhere = await openSession(address, 'comity prove', connectTimeoutMs, {
    answerTimeoutMs: connectTimeoutMs,
  });
  try {
    await elsewhere.rows('SELECT pg_notify($1, $2)', [channel, word]);
  } finally {
    await elsewhere.end();
  }
}
