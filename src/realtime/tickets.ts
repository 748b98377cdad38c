/**
 * Tickets open a WebSocket from a browser, which cannot send Authorization with it. A ticket works once, for a short
 * time, and replaces the credential that it was made with. The credential is stored sealed by a key that only the
 * ticket yields, and is authenticated anew when the ticket is used, so revocation and limits still apply. A reader of
 * the store learns no credential; a later reader of a URL has a useless ticket.
 */
import { hash } from 'node:crypto';
import { openText, type Seal, sealText } from '../kernel/sealed-text.ts';
import type { Services } from '../store/capabilities.ts';
import { keptRow, type Store } from '../store/store.ts';

/** Rows by the base64url SHA-256 of the ticket. No events. */
export const realtimeTicketsTable = 'realtime_tickets';

/** A credential, in exactly one of the places where a request carries it. */
export type SealedCredential = {
  readonly authorization?: string;
  readonly xApiKey?: string;
  readonly cookie?: string;
  /** The query component that contains it, undecoded. */
  readonly query?: string;
};

export type Tickets = {
  /** @returns a ticket that is valid for `seconds` @throws StoreUnavailable */
  make(credential: SealedCredential): Promise<string>;
  /**
   * Returns the credential and uses up the ticket; undefined if it is unknown, expired or used.
   * @throws StoreUnavailable
   */
  use(ticket: string): Promise<SealedCredential | undefined>;
};

export type TicketsOptions = Pick<Services, 'clock' | 'random'> & {
  readonly store: Pick<Store, 'read' | 'commit'>;
  readonly seconds: number;
};

type TicketRow = { readonly sealed: string; readonly expiresAt: number };

const ticketBytes = 32;
/** `ticketBytes` in base64url. */
const ticketPattern = /^[A-Za-z0-9_-]{43}$/;

export function createTickets({ store, clock, random, seconds }: TicketsOptions): Tickets {
  return {
    async make(credential) {
      const ticket = random(ticketBytes).toString('base64url');
      const id = idOf(ticket);
      const now = clock();
      const row: TicketRow = {
        sealed: sealText(JSON.stringify(credential), sealOf(ticket, id), random),
        expiresAt: now + seconds * 1000,
      };
      const next = keptRow(JSON.stringify(row), null, now, now);
      const change = { table: realtimeTicketsTable, id, expect: { absent: true }, next } as const;
      const { outcome } = await store.commit({ changes: [change], events: [] });
      if (outcome !== 'committed')
        throw new Error('a new ticket of 256 random bits exists already: the random source is broken');
      return ticket;
    },
    async use(ticket) {
      if (!ticketPattern.test(ticket)) return undefined;
      const id = idOf(ticket);
      const row = await store.read(realtimeTicketsTable, id);
      if (row === undefined) return undefined;
      const { sealed, expiresAt } = JSON.parse(row.doc) as TicketRow;
      if (clock() >= expiresAt) return undefined;
      // The request that deletes the row uses the ticket: one of several succeeds, in any process.
      const change = { table: realtimeTicketsTable, id, expect: { rev: row.rev }, next: null };
      const { outcome } = await store.commit({ changes: [change], events: [] });
      const opened = outcome === 'committed' ? openText(sealed, sealOf(ticket, id)) : undefined;
      return opened === undefined ? undefined : (JSON.parse(opened) as SealedCredential);
    },
  };
}

function idOf(ticket: string): string {
  return hash('sha256', ticket, 'base64url');
}

function sealOf(ticket: string, id: string): Seal {
  return { secret: ticket, id, purpose: 'comity realtime ticket' };
}
