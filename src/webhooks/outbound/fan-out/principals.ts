/**
 * The principals that endpoints are told things for: one for each owner and set of scopes, however many endpoints they have. They are
 * asked for anew when an account changed, and stay the same objects where nothing about them did.
 */
import type { Authenticated, Scope } from '../../../model/principal.ts';

/** Undefined: there is no such account, or it is disabled. */
export type PrincipalOf = (
  owner: string | null,
  scopes: readonly Scope[],
) => Promise<Authenticated | undefined>;

export type Principals = {
  /** Only after `know` of the same. */
  get(owner: string | null, scopes: readonly Scope[]): Authenticated | undefined;
  /**
   * Learns those that are not known, forgets all others; asks for all of them where `anew`. Rejects as `principalOf` does, and is then
   * as it was before.
   */
  know(wanted: Iterable<Wanted>, anew: boolean): Promise<void>;
  /** Learns those that are not known besides the others, and asks anew for these owners. Rejects as `know` does. */
  learn(wanted: Iterable<Wanted>, owners: ReadonlySet<string>): Promise<void>;
  readonly size: number;
};

export type Wanted = { readonly owner: string | null; readonly scopes: readonly Scope[] };

/** Questions under way at once: the store gathers them, and none of its queues fills. */
const askedAtOnce = 256;

export function createPrincipals(principalOf: PrincipalOf): Principals {
  let known = new Map<string, Authenticated | undefined>();
  return {
    get: (owner, scopes) => known.get(keyOf(owner, scopes)),
    get size() {
      return known.size;
    },
    async know(wanted, anew) {
      const next = new Map<string, Authenticated | undefined>();
      const asked = new Map<string, Wanted>();
      for (const each of wanted) {
        const key = keyOf(each.owner, each.scopes);
        next.set(key, known.get(key));
        if (anew || !known.has(key)) asked.set(key, each);
      }
      for (const [key, found] of await askFor(asked)) next.set(key, same(known.get(key), found));
      known = next;
    },
    async learn(wanted, owners) {
      const asked = new Map<string, Wanted>();
      for (const each of wanted) {
        const key = keyOf(each.owner, each.scopes);
        if (!known.has(key) || owners.has(each.owner ?? '')) asked.set(key, each);
      }
      for (const [key, found] of await askFor(asked)) known.set(key, same(known.get(key), found));
    },
  };

  async function askFor(wanted: ReadonlyMap<string, Wanted>): Promise<[string, Authenticated | undefined][]> {
    const asked = [...wanted];
    const answers: [string, Authenticated | undefined][] = [];
    for (let at = 0; at < asked.length; at += askedAtOnce) {
      const part = asked.slice(at, at + askedAtOnce);
      const found = await Promise.all(part.map(([, { owner, scopes }]) => principalOf(owner, scopes)));
      for (const [index, [key]] of part.entries()) answers.push([key, found[index]]);
    }
    return answers;
  }
}

function same(before: Authenticated | undefined, now: Authenticated | undefined): Authenticated | undefined {
  return before !== undefined && before.audience === now?.audience ? before : now;
}

function keyOf(owner: string | null, scopes: readonly Scope[]): string {
  return `${owner ?? ''} ${scopes.join()}`;
}
