/**
 * Tickets (surface, "Connections"): what a browser, which cannot send Authorization with a WebSocket, opens one by. A ticket stands for the very
 * credential that it was made with, once and for a short time: that is kept sealed by a key that only the ticket has, and is judged anew when the
 * ticket is used, so that revocation and limits hold as ever. Who reads the store learns no credential, and who reads a URL later has
 * nothing.
 */
import { createCipheriv, createDecipheriv, hash, hkdfSync } from 'node:crypto';
import { keptRow } from '../../store/kept-row.ts';
import type { Store } from '../../store/store.ts';

/** By the base64url SHA-256 of a ticket. No events. */
export const realtimeTicketsTable = 'realtime_tickets';

/** A credential as the places of a request hold it; one of them. */
export type SealedCredential = {
  readonly authorization?: string;
  readonly xApiKey?: string;
  readonly cookie?: string;
  /** The query component that has it, undecoded. */
  readonly query?: string;
};

export type Tickets = {
  /** @returns a ticket that is good for `seconds` @throws StoreUnavailable */
  make(credential: SealedCredential): Promise<string>;
  /** What it stands for; undefined where it is none, is over or was used, by whomever. @throws StoreUnavailable */
  use(ticket: string): Promise<SealedCredential | undefined>;
};

export type TicketsOptions = {
  readonly store: Pick<Store, 'read' | 'commit'>;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly random: (count: number) => Buffer;
  readonly seconds: number;
};

type TicketRow = { readonly sealed: string; readonly expiresAt: number };

const ticketBytes = 32;
const cipher = 'aes-256-gcm';
const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
/** Octets in base64url. */
const ticketPattern = /^[A-Za-z0-9_-]{43}$/;

export function createTickets({ store, clock, random, seconds }: TicketsOptions): Tickets {
  return {
    async make(credential) {
      const ticket = random(ticketBytes).toString('base64url');
      const id = idOf(ticket);
      const now = clock();
      const row: TicketRow = { sealed: seal(ticket, id, credential), expiresAt: now + seconds * 1000 };
      const next = keptRow(JSON.stringify(row), null, now, now);
      const change = { table: realtimeTicketsTable, id, expect: { absent: true }, next } as const;
      const { outcome } = await store.commit({ changes: [change], events: [] });
      if (outcome !== 'committed') throw new Error('a ticket of 256 random bits was there already');
      return ticket;
    },
    async use(ticket) {
      if (!ticketPattern.test(ticket)) return undefined;
      const id = idOf(ticket);
      const row = await store.read(realtimeTicketsTable, id);
      if (row === undefined) return undefined;
      const { sealed, expiresAt } = JSON.parse(row.doc) as TicketRow;
      if (clock() >= expiresAt) return undefined;
      // Whoever removes it has used it: of several, on whatever process, one can.
      const change = { table: realtimeTicketsTable, id, expect: { rev: row.rev }, next: null };
      const { outcome } = await store.commit({ changes: [change], events: [] });
      return outcome === 'committed' ? unseal(ticket, id, sealed) : undefined;
    },
  };
}

function idOf(ticket: string): string {
  return hash('sha256', ticket, 'base64url');
}

/** Key and nonce, of one message alone: both follow from the ticket (RFC 5869), so neither is kept. */
function secretsOf(ticket: string): { readonly key: Buffer; readonly nonce: Buffer } {
  const length = keyBytes + nonceBytes;
  const secrets = Buffer.from(hkdfSync('sha256', ticket, '', 'comity realtime ticket', length));
  return { key: secrets.subarray(0, keyBytes), nonce: secrets.subarray(keyBytes) };
}

function seal(ticket: string, id: string, credential: SealedCredential): string {
  const { key, nonce } = secretsOf(ticket);
  const sealing = createCipheriv(cipher, key, nonce).setAAD(Buffer.from(id));
  const text = Buffer.concat([sealing.update(JSON.stringify(credential), 'utf8'), sealing.final()]);
  return Buffer.concat([text, sealing.getAuthTag()]).toString('base64url');
}

/** @throws where the row was tampered with */
function unseal(ticket: string, id: string, sealed: string): SealedCredential {
  const { key, nonce } = secretsOf(ticket);
  const octets = Buffer.from(sealed, 'base64url');
  const opening = createDecipheriv(cipher, key, nonce, { authTagLength: tagBytes })
    .setAAD(Buffer.from(id))
    .setAuthTag(octets.subarray(-tagBytes));
  const text = Buffer.concat([opening.update(octets.subarray(0, -tagBytes)), opening.final()]);
  return JSON.parse(text.toString('utf8')) as SealedCredential;
}
