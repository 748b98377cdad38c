/** Every path of part 5: logins, passwords, sign-ins, accounts, keys, the audit trail and the public keys. */
import type { Components } from '../components.ts';
import type { CollectionLimits } from '../described.ts';
import type { Item } from '../item.ts';
import type { PathDescription } from '../path-item.ts';
import type { AccountLimits } from './account-schemas.ts';
import { type BuiltInCollections, builtInPaths } from './built-in-paths.ts';
import { jwksPath } from './jwks-path.ts';
import { accountsTag, loginPaths } from './login-paths.ts';
import { passwordPaths } from './password-paths.ts';
import { signInPaths } from './sign-in-paths.ts';

/** How the program is set up, as far as it shows. */
export type AccountOptions = {
  /** Those that the program brings itself. */
  readonly collections: BuiltInCollections;
  readonly limits: AccountLimits;
  readonly registration: 'open' | 'closed';
  readonly verifiedEmailRequired: boolean;
  /** Names of the OpenID providers, as in paths. */
  readonly providers: readonly string[];
};

export function accountPaths(
  base: string,
  accounts: AccountOptions,
  listLimits: CollectionLimits,
  components: Components,
): readonly PathDescription[] {
  const limits = { ...listLimits, ...accounts.limits };
  const options = { ...accounts, base, limits, components };
  return [
    ...loginPaths(options),
    ...passwordPaths(options),
    ...(accounts.providers.length === 0 ? [] : signInPaths(options)),
    ...builtInPaths(options),
    jwksPath(components),
  ];
}

export function accountTags({ users, keys, audit }: BuiltInCollections): readonly Item[] {
  return [
    { name: accountsTag, description: 'Logging in and out, and what stands behind it.' },
    ...[users, keys, audit].map(({ name, description }) => ({ name, description })),
  ];
}
