/** What the resources of accounts need besides what every collection does. */
import type { Audit } from '../../../auth/audit-fact.ts';
import type { Sessions } from '../../../auth/sessions/sessions.ts';
import type { Change } from '../../../store/store.ts';
import type { ContentLimits } from '../../content/content-limits.ts';
import type { AddressOf } from '../fact-of-ask.ts';

export type UserResourcesOptions = {
  readonly audit: Pick<Audit, 'entry'>;
  readonly addressOf: AddressOf;
  readonly sessions: Pick<Sessions, 'endOfUser'>;
  /** A PHC string. @throws StoreUnavailable when too many wait */
  readonly hashPassword: (password: string) => Promise<string>;
  readonly passwordCharactersMin: number;
  readonly passwordBytesMax: number;
  /** What a unit contains that changes what an owner of endpoints may be told (webhooks/outbound/fan-out/generation.ts). */
  readonly generationChanges: () => readonly Change[];
  readonly limits: ContentLimits & { readonly validationErrorsMax: number };
};
