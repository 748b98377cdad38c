/**
 * Limits on the number of tunnels, of all principals and of each, and on the octets that those of one principal carry
 * in a day (§8). Counted in this process; a day is in UTC, and an octet counts on the day on which it passes. A refusal
 * says when to retry.
 */

import { memoryBounds } from '../memory/bounds.ts';

export type BudgetSettings = {
  readonly tunnelsMax: number;
  readonly tunnelsPerPrincipalMax: number;
  readonly tunnelBytesPerDayMax: number;
};

export type Account = {
  /** Counts octets in either direction. False: the daily limit is reached, and the tunnel must be cut. */
  readonly spend: (bytes: number) => boolean;
};

/** A place in the count of tunnels; `giveBack` releases it once. */
export type Place = { readonly account: Account; readonly giveBack: () => void };

export type Entry =
  | { readonly ok: true; readonly place: Place }
  | {
      readonly ok: false;
      readonly reason: 'all' | 'principal' | 'bytes';
      readonly retryAfterSeconds: number;
    };

export type Budget = {
  readonly enter: (principal: string) => Entry;
  readonly count: () => number;
};

const dayMs = 86_400_000;
/** An estimate: tunnels end at any moment. */
const placeRetrySeconds = 5;

type Ledger = { open: number; day: number; bytes: number };

const ledgersMax = memoryBounds.tunnelLedgers.entries;

export function createBudget(settings: BudgetSettings, clock: () => number): Budget {
  const { tunnelsMax, tunnelsPerPrincipalMax, tunnelBytesPerDayMax } = settings;
  const ledgers = new Map<string, Ledger>();
  let open = 0;
  let today = dayOf(clock());

  /** Forgets the principals of other days without open tunnels, so that only those of one day are kept. */
  function turnDay(): void {
    const day = dayOf(clock());
    if (day === today) return;
    today = day;
    for (const [principal, ledger] of ledgers) if (ledger.open === 0) ledgers.delete(principal);
  }

  function isSpent(ledger: Ledger): boolean {
    return tunnelBytesPerDayMax > 0 && ledger.day === today && ledger.bytes >= tunnelBytesPerDayMax;
  }

  function accountOf(ledger: Ledger): Account {
    if (tunnelBytesPerDayMax === 0) return unlimited;
    return {
      spend(bytes) {
        turnDay();
        if (ledger.day !== today) {
          ledger.day = today;
          ledger.bytes = 0;
        }
        ledger.bytes += bytes;
        return ledger.bytes < tunnelBytesPerDayMax;
      },
    };
  }

  function placeOf(principal: string, ledger: Ledger): Place {
    open += 1;
    ledger.open += 1;
    let isTaken = true;
    return {
      account: accountOf(ledger),
      giveBack() {
        if (!isTaken) return;
        isTaken = false;
        open -= 1;
        ledger.open -= 1;
        if (ledger.open === 0 && (ledger.bytes === 0 || ledger.day !== today)) ledgers.delete(principal);
      },
    };
  }

  return {
    enter(principal) {
      turnDay();
      const ledger = ledgers.get(principal) ?? { open: 0, day: today, bytes: 0 };
      if (isSpent(ledger)) {
        const retryAfterSeconds = Math.ceil(((today + 1) * dayMs - clock()) / 1000);
        return { ok: false, reason: 'bytes', retryAfterSeconds };
      }
      if (ledger.open >= tunnelsPerPrincipalMax) {
        return { ok: false, reason: 'principal', retryAfterSeconds: placeRetrySeconds };
      }
      if (open >= tunnelsMax) return { ok: false, reason: 'all', retryAfterSeconds: placeRetrySeconds };
      if (!ledgers.has(principal)) makeRoomIn(ledgers);
      ledgers.set(principal, ledger);
      return { ok: true, place: placeOf(principal, ledger) };
    },
    count: () => open,
  };
}

/** Forgets the oldest count. A caller with this many principals has as many limits anyway. */
function makeRoomIn(ledgers: Map<string, Ledger>): void {
  for (const [principal, ledger] of ledgers) {
    if (ledgers.size < ledgersMax) return;
    if (ledger.open === 0) ledgers.delete(principal);
  }
}

const unlimited: Account = { spend: () => true };

function dayOf(ms: number): number {
  return Math.floor(ms / dayMs);
}
