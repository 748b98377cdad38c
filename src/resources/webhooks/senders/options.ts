/** What the resources of senders need. */
import type { DeclaredSender } from '../../../config/senders.ts';
import type { SecretName, SenderSecrets } from '../../../webhooks/inbound/sender-secrets.ts';
import type { ActionOptions } from '../../action/action.ts';
import type { QueryLimits } from '../../query/asked.ts';

export type SenderResourcesOptions = {
  /** `/api/v1` */
  readonly base: string;
  readonly senders: ReadonlyMap<string, DeclaredSender>;
  readonly secrets: Pick<SenderSecrets, 'of' | 'source' | 'refresh'>;
  /** Puts a secret, the one given or one that is made, before those that are kept, which last `overlapMs` longer at most. */
  readonly rotate: (
    name: SecretName,
    how: { readonly secret?: string; readonly overlapMs: number },
  ) => Promise<{ readonly secret: string }>;
  readonly clock: () => number;
  readonly secretOverlapSecondsMax: number;
  readonly limits: ActionOptions['limits'];
  readonly listLimits: QueryLimits;
};
