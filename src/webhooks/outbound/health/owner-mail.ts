/**
 * Tells the owner of an endpoint by mail. An owner who is no account, such as the operator, is told at `operatorMail`, where that is set.
 * No address of an endpoint is in a mail, which many machines read: the origin and the id say which it is, and a path may hold a secret.
 */
import type { EndpointNotice, Notify } from './notice.ts';

export type OwnerMail = { readonly to: string; readonly subject: string; readonly text: string };

/** What a mail may say. */
export type NoticeFacts = Pick<EndpointNotice, 'kind' | 'reason'> & {
  readonly endpointId: string;
  /** `https://shop.example` */
  readonly origin: string;
  /** ISO 8601. */
  readonly since: string;
};

export type OwnerNoticeOptions = {
  /** Undefined: no mail server is configured. */
  readonly mail: { send(mail: OwnerMail): void } | undefined;
  /** The verified or given address of an account; undefined: there is none, or it is disabled. */
  readonly findAddress: (owner: string) => Promise<string | undefined>;
  readonly operatorMail: string | undefined;
  readonly texts: (to: string, facts: NoticeFacts) => OwnerMail;
};

/** Undefined where there is no way to tell anybody. */
export function createOwnerNotices(options: OwnerNoticeOptions): Notify | undefined {
  const { mail, findAddress, operatorMail, texts } = options;
  if (mail === undefined) return undefined;
  return async ({ kind, reason, endpoint, owner, since }) => {
    const to = (owner === null ? undefined : await findAddress(owner)) ?? operatorMail;
    if (to === undefined) return;
    const { origin } = new URL(endpoint.url);
    mail.send(
      texts(to, { kind, reason, endpointId: endpoint.id, origin, since: new Date(since).toISOString() }),
    );
  };
}
