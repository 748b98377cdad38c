/**
 * A connection that LISTENs, and the proof that it hears. Behind a pooler in transaction mode LISTEN succeeds and nothing ever
 * comes, so once it listens another session sends a word that must arrive. Another, because the listening session would hear
 * itself even there: its own notification comes with the answer to the statement that sent it.
 *
 * It hears from the moment the word arrived, however late, until the connection is lost.
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
  /** LISTEN is in force from here on: after the first time, and whenever the connection was made anew. */
  readonly onListening: () => void;
  readonly onPayload: (payload: string) => void;
  /** Whether notifications arrive: called when it is first known, and when it changes. */
  readonly onHearing: (hears: boolean) => void;
};

export type Listener = { close(): Promise<void> };

/** Time for the word to arrive until it is taken that none does. */
const proofMs = 1_000;
/** A connection over which nothing is asked would not notice that the network is gone. */
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
      // The connection was lost again, and listens once it is made anew; or it may not listen, and never hears.
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
      // Not said, so not heard: the next heartbeat tries again.
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
      // `onLost` tells it.
    });
  }
}

async function sayFromElsewhere(options: ListenerOptions, word: string): Promise<void> {
  const { address, channel, connectTimeoutMs } = options;
  const elsewhere = await openSession(address, 'comity prove', connectTimeoutMs, connectTimeoutMs);
  try {
    await elsewhere.rows('SELECT pg_notify($1, $2)', [channel, word]);
  } finally {
    await elsewhere.end();
  }
}
