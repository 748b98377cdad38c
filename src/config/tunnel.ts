/**
 * Where tunnels and forwarded requests may lead, by who asks (§4.10), as a configuration declares it. Three lists can hold for a caller, and a
 * host must pass each of them:
 *
 * - `everybody`, which no rule lifts;
 * - that of the first rule that names the caller, or `others` where none does. `others: { allow: [] }` closes the tunnel for all who are
 *   not named;
 * - those of the API key that is used and of the keys that it was made with.
 *
 * The first rule alone, and not all of them together: several that hold at once would have to be joined, and whether joining widens or
 * narrows is what people then get wrong. So a rule can be read by itself, and the narrow one stands before the wide one.
 */
import type { Known } from '../model/credential.ts';
import type { HostRules } from '../model/host-rules.ts';
import type { Authenticated } from '../model/principal.ts';
import type { HostRulesDeclaration } from './host-rules.ts';

/** What a user writes under `tunnel`. */
export type TunnelDeclaration = {
  /** Holds for everybody, whatever else does. Default: every host. */
  readonly everybody?: HostRulesDeclaration;
  /** Of these the first that names the caller holds. */
  readonly rules?: readonly TunnelRuleDeclaration[];
  /** Holds for whom no rule names. Default: every host. */
  readonly others?: HostRulesDeclaration;
};

/** A caller is named by any of the three. */
export type TunnelRuleDeclaration = HostRulesDeclaration & {
  readonly roles?: readonly string[];
  /** Ids of principals: `usr_...` of an account, `key_...` of a key that belongs to none, `administrator`, `{issuer}|{sub}` of others. */
  readonly users?: readonly string[];
  /** Ids of API keys, `key_...`; keys that were made with one are named with it. */
  readonly keys?: readonly string[];
};

/** A rule, checked and complete. */
export type TunnelRule = {
  readonly roles: ReadonlySet<string>;
  readonly users: ReadonlySet<string>;
  readonly keys: ReadonlySet<string>;
  readonly hosts: HostRules;
};

/** A declaration, checked and complete. */
export type TunnelAccess = {
  /** Undefined: every host. */
  readonly everybody: HostRules | undefined;
  readonly rules: readonly TunnelRule[];
  readonly others: HostRules | undefined;
};

/** The lists that hold for a caller, all of them. */
export type HostLists = (principal: Authenticated, known: Known) => readonly HostRules[];

export function createHostLists({ everybody, rules, others }: TunnelAccess): HostLists {
  return (principal, known) => {
    const own = rules.find((rule) => names(rule, principal, known))?.hosts ?? others;
    const lists: HostRules[] = [];
    if (everybody !== undefined) lists.push(everybody);
    if (own !== undefined) lists.push(own);
    if (known.hosts !== undefined) lists.push(...known.hosts);
    return lists;
  };
}

function names({ roles, users, keys }: TunnelRule, principal: Authenticated, known: Known): boolean {
  if (users.has(principal.id)) return true;
  if (known.key !== null && keys.size > 0) {
    if (keys.has(known.key) || known.makers?.some((maker) => keys.has(maker))) return true;
  }
  for (const role of principal.roles) if (roles.has(role)) return true;
  return false;
}
