/** A declared sender as administrators see it: how it signs, what becomes of its messages, and where its secrets come from. No secret. */
import type { DeclaredSender, HandOnTo } from '../../../config/senders.ts';
import type { SecretName, SenderSecrets } from '../../../webhooks/inbound/sender-secrets.ts';
import type { SignatureRule } from '../../../webhooks/signature/signature-rule.ts';

export type ShownSender = ShownSecrets & {
  readonly name: string;
  readonly description: string;
  readonly preset: string | null;
  /** Where it posts. */
  readonly path: string;
  readonly signature: ShownSignature;
  readonly handOn: ShownHandOn;
  /** Seconds from each failed attempt to the next. */
  readonly schedule: readonly number[];
  /** Null: as the setting says. */
  readonly inFlightMax: number | null;
};

export type ShownSecrets = {
  readonly secretSource: 'environment' | 'store';
  readonly secretVariable: string;
  /** Secrets that are taken, or signed with, now. */
  readonly secretCount: number;
  /** When the last of those that are being replaced is over, ISO 8601; null: none is. */
  readonly oldSecretsUntil: string | null;
};

type ShownSignature =
  | {
      readonly kind: 'hmac';
      readonly header: string;
      readonly hash: string;
      readonly encoding: string;
      /** 0: any time, or none is signed. */
      readonly toleranceSeconds: number;
    }
  | { readonly kind: 'token'; readonly header: string };

type ShownHandOn =
  | { readonly kind: 'handler' | 'inbox' }
  | (ShownSecrets & { readonly kind: 'forward'; readonly url: string; readonly scheme: string });

type Secrets = Pick<SenderSecrets, 'of' | 'source'>;

/**
 * @param path where it posts: `/api/v1/webhooks/billing`
 * @param now milliseconds since the epoch
 */
export function shownSender(
  sender: DeclaredSender,
  path: string,
  secrets: Secrets,
  now: number,
): ShownSender {
  const { name, description, preset, rule, secretVariable, schedule, inFlightMax } = sender;
  const shownSecrets = (use: SecretName['use'], variable: string) =>
    secretsOf(secrets, { sender: name, use }, variable, now);
  return {
    ...{ name, description, preset, path },
    signature: signatureOf(rule.signature),
    handOn: handOnOf(sender.handOn, shownSecrets),
    schedule,
    inFlightMax: inFlightMax ?? null,
    ...shownSecrets('receive', secretVariable),
  };
}

function secretsOf(secrets: Secrets, name: SecretName, secretVariable: string, now: number): ShownSecrets {
  const active = secrets.of(name).filter(({ until }) => until === null || until > now);
  const ends = active.flatMap(({ until }) => (until === null ? [] : [until]));
  return {
    secretSource: secrets.source(name),
    secretVariable,
    secretCount: active.length,
    oldSecretsUntil: ends.length === 0 ? null : new Date(Math.max(...ends)).toISOString(),
  };
}

function signatureOf(signature: SignatureRule): ShownSignature {
  const { kind, header } = signature;
  if (kind === 'token') return { kind, header };
  const { hash, encoding, timestamp, toleranceSeconds } = signature;
  return {
    ...{ kind, header, hash, encoding },
    toleranceSeconds: timestamp === undefined ? 0 : toleranceSeconds,
  };
}

function handOnOf(
  handOn: HandOnTo,
  shownSecrets: (use: SecretName['use'], variable: string) => ShownSecrets,
): ShownHandOn {
  if (handOn.kind !== 'forward') return { kind: handOn.kind };
  const { kind, url, scheme, secretVariable } = handOn;
  return { kind, url: withoutCredentials(url), scheme, ...shownSecrets('forward', secretVariable) };
}

/** A query component is as good a place for a token as any. */
function withoutCredentials({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}
