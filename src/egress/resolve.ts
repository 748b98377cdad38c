/**
 * Resolves names by the system's resolver, hosts file included, in its order. Judges no address and caches none, but concurrent lookups of
 * one name share one call.
 *
 * A lookup holds a thread until the system gives up, and Node gives lookups two of its four threads. So that hanging name servers delay no
 * other receiver, names whose last lookup was slow take turns: one of them at a time is resolved, and one thread is left for the rest.
 */
import { lookup as systemLookup } from 'node:dns/promises';
import { memoryBounds } from '../memory/bounds.ts';
import { codeOf, DialFailure } from './dial-failure.ts';

/** Every address of a name, as texts. Rejects with an error that has a code, such as `ENOTFOUND`. */
export type Lookup = (hostname: string) => Promise<readonly string[]>;

export type Resolve = (hostname: string, signal: AbortSignal) => Promise<readonly string[]>;

/** Most addresses of one name; a name with more is refused, so that none is left unjudged. */
const addressesMax = 256;

/** A lookup that took longer marks its name as slow, until one is quicker. */
const slowMs = 1000;

/** Names that are remembered as slow; a further one replaces the oldest. */
const slowNamesMax = memoryBounds.slowNames.entries;

type LookupUnderWay = { readonly found: Promise<readonly string[]>; waiting: number };

/**
 * The result rejects with a `DialFailure` of kind `dns`, or with the signal's reason.
 * @param monotonic milliseconds that never go back
 */
export function createResolver(
  lookup: Lookup = lookUpAll,
  monotonic = (): number => performance.now(),
): Resolve {
  const underWay = new Map<string, LookupUnderWay>();
  const slowNames = new Set<string>();
  let lastSlow: Promise<unknown> = Promise.resolve();

  async function lookUpTimed(hostname: string): Promise<readonly string[]> {
    const startedMs = monotonic();
    try {
      return await lookup(hostname);
    } finally {
      slowNames.delete(hostname);
      if (monotonic() - startedMs > slowMs) remember(slowNames, hostname);
    }
  }

  /** Resolves after all earlier slow names; skipped if nothing waits for it any more. */
  function lookUpInTurn(hostname: string): Promise<readonly string[]> {
    const turn = lastSlow.then(() => (underWay.get(hostname)?.waiting === 0 ? [] : lookUpTimed(hostname)));
    lastSlow = turn.catch(() => undefined);
    return turn;
  }

  function lookUpOnce(hostname: string): LookupUnderWay {
    const known = underWay.get(hostname);
    if (known !== undefined) return known;
    const found = slowNames.has(hostname) ? lookUpInTurn(hostname) : lookUpTimed(hostname);
    const started: LookupUnderWay = { found: found.finally(() => underWay.delete(hostname)), waiting: 0 };
    underWay.set(hostname, started);
    return started;
  }

  return async (hostname, signal) => {
    const shared = lookUpOnce(hostname);
    shared.waiting += 1;
    const addresses = await untilAborted(shared.found, signal).finally(() => {
      shared.waiting -= 1;
    });
    if (addresses.length === 0) throw new DialFailure('dns', 'The name has no address');
    if (addresses.length > addressesMax) {
      throw new DialFailure('dns', `The name has more than ${addressesMax} addresses`);
    }
    return addresses;
  };
}

async function lookUpAll(hostname: string): Promise<readonly string[]> {
  const found = await systemLookup(hostname, { all: true, order: 'verbatim' });
  return found.map(({ address }) => address);
}

function remember(names: Set<string>, name: string): void {
  names.add(name);
  const [oldest] = names;
  if (names.size > slowNamesMax && oldest !== undefined) names.delete(oldest);
}

function untilAborted(found: Promise<readonly string[]>, signal: AbortSignal): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => reject(signal.reason);
    if (signal.aborted) giveUp();
    else signal.addEventListener('abort', giveUp, { once: true });
    found.then(resolve, (error: unknown) => reject(toDialFailure(error)));
    found.finally(() => signal.removeEventListener('abort', giveUp)).catch(() => undefined);
  });
}

function toDialFailure(error: unknown): DialFailure {
  const code = codeOf(error);
  const message =
    code === 'ENOTFOUND' || code === 'ENODATA'
      ? 'The name does not resolve'
      : `The name could not be looked up${code === '' ? '' : ` (${code})`}`;
  return new DialFailure('dns', message, error);
}
