/** Options of the senders' resources. */
import type { DeclaredSender } from '../../../config/senders.ts';
import type { ActionLimits } from '../../../kernel/action.ts';
import { pathParameter, type Tag } from '../../../kernel/documentation.ts';
import type { QueryLimits } from '../../../resources/query/list-query.ts';
import type { SecretName, SenderSecrets } from '../sender-secrets.ts';

export const sendersTag: Tag = { name: 'senders', description: 'The declared senders of webhooks.' };
export const senderParameter = pathParameter('name', 'Name of the sender, as in its path.');

export type SenderResourcesOptions = {
  /** `/api/v1` */
  readonly base: string;
  readonly senders: ReadonlyMap<string, DeclaredSender>;
  readonly secrets: Pick<SenderSecrets, 'of' | 'source' | 'refresh'>;
  /** Puts a secret, given or created, before the existing ones, which stay valid for at most `overlapMs` more. */
  readonly rotate: (
    name: SecretName,
    how: { readonly secret?: string; readonly overlapMs: number },
  ) => Promise<{ readonly secret: string }>;
  readonly clock: () => number;
  readonly secretOverlapSecondsMax: number;
  readonly limits: ActionLimits;
  readonly listLimits: QueryLimits;
};
