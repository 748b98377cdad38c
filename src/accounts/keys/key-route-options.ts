/** The needs of the resources of API keys beyond those of every collection. */

import type { ContentLimits } from '../../kernel/content/content-limits.ts';
import type { Change } from '../../store/store.ts';
import type { Audit } from '../audit-fact.ts';
import type { AddressOf } from '../fact-of-ask.ts';

export type KeyResourcesOptions = {
  readonly audit: Pick<Audit, 'entry'>;
  readonly addressOf: AddressOf;
  /** That many octets of good randomness. */
  readonly random: (count: number) => Buffer;
  /** What a unit contains that changes what an owner of endpoints may be told (webhooks/sending/fan-out/generation.ts). */
  readonly generationChanges: () => readonly Change[];
  readonly keyOverlapSecondsMax: number;
  readonly limits: ContentLimits & { readonly validationErrorsMax: number };
};
