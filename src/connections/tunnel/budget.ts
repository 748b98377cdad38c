/**
 * How many tunnels there may be, of all principals and of each, and how many octets those of one may carry in a day (§8). Counted in this
 * process; a day is one of UTC, and an octet counts on the day on which it passes. Who is refused learns when to come back.
 */

import { memoryBounds } from '../../memory/bounds.ts';

export type BudgetSettings = {
  readonly tunnelsMax: number;
  readonly tunnelsPerPrincipalMax: number;
  /** 0: no limit. */
  readonly tunnelBytesPerDayMax: number;
};

/** What one principal may still carry. */
export type Account = {
  /** Counts octets that passed, in either direction. False: those of the day are used up, and whatever carries them is to be cut. */
  readonly spend: (bytes: number) => boolean;
};

/** A place that is taken until it is given back, once. */
export type Place = { readonly account: Account; readonly giveBack: () => void };

export type Entry =
  | { readonly ok: true; readonly place: Place }
  | {
      readonly ok: false;
      readonly reason: 'all' | 'principal' | 'bytes';
      readonly retryAfterSeconds: number;
    };

export type Budget = {
  /** @param principal its id */
  readonly enter: (principal: string) => Entry;
  /** Places that are taken. */
  readonly count: () => number;
};

const dayMs = 86_400_000;
/** Tunnels end at any moment; this is a guess. */
const placeRetrySeconds = 5;

type Ledger = { open: number; day: number; bytes: number };

/** Principals whose octets are remembered. */
const ledgersMax = memoryBounds.tunnelLedgers.entries;

/** @param clock milliseconds since the epoch */
export function createBudget(settings: BudgetSettings, clock: () => number): Budget {
  const { tunnelsMax, tunnelsPerPrincipalMax, tunnelBytesPerDayMax } = settings;
  const ledgers = new Map<string, Ledger>();
  let open = 0;
  let today = dayOf(clock());

  /** Principals of other days that have nothing open are forgotten: as many are remembered as came in a day. */
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

/** Whoever comes with so many principals has as many budgets anyway. */
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
