/** What the resources of API keys need besides what every collection does. */
import type { Audit } from '../../../auth/audit-fact.ts';
import type { ContentLimits } from '../../content/content-limits.ts';
import type { AddressOf } from '../fact-of-ask.ts';

export type KeyResourcesOptions = {
  readonly audit: Pick<Audit, 'entry'>;
  readonly addressOf: AddressOf;
  /** That many octets of good randomness. */
  readonly random: (count: number) => Buffer;
  readonly keyOverlapSecondsMax: number;
  readonly limits: ContentLimits & { readonly validationErrorsMax: number };
};
