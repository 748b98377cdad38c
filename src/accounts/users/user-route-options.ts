/** The needs of the resources of accounts beyond those of every collection. */

import type { ResolvedAccounts } from '../../config/accounts.ts';
import type { ContentLimits } from '../../kernel/content/content-limits.ts';
import type { Change } from '../../store/store.ts';
import type { Audit } from '../audit-fact.ts';
import type { AddressOf } from '../fact-of-ask.ts';
import type { Sessions } from '../sessions/sessions.ts';

export type UserResourcesOptions = {
  readonly accounts: ResolvedAccounts;
  readonly audit: Pick<Audit, 'entry'>;
  readonly addressOf: AddressOf;
  readonly sessions: Pick<Sessions, 'endOfUser'>;
  /** A PHC string. @throws StoreUnavailable when too many wait */
  readonly hashPassword: (password: string) => Promise<string>;
  readonly passwordCharactersMin: number;
  readonly passwordBytesMax: number;
  /** Octets of the content that changes an account, and characters of an account. */
  readonly accountBytesMax: number;
  /** What a unit contains that changes what an owner of endpoints may be told (webhooks/sending/fan-out/generation.ts). */
  readonly generationChanges: () => readonly Change[];
  readonly limits: ContentLimits & { readonly validationErrorsMax: number };
};
