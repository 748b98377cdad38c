/** Checks the secrets of senders. No message repeats any part of one: its reader may not be permitted to know the secret. */
import { standardKey } from '../../webhooks/signature/mac-keys.ts';
import type { DeclaredSender } from '../senders.ts';

export const secretCharactersMax = 1024;
const secretCharactersAdvised = 16;
const prefix = 'whsec_';
/** The characters of a field value (RFC 9110 §5.5), inner spaces included. */
const fieldText = /^[!-~](?:[ -~]*[!-~])?$/;

/** Why the secret is refused, as the predicate of a sentence; undefined for a valid one. */
export function refuseSenderSecret(
  { rule, handOn }: Pick<DeclaredSender, 'rule' | 'handOn'>,
  use: SecretUse['use'],
  secret: string,
): string | undefined {
  if (secret === '') return 'is empty';
  if (secret.length > secretCharactersMax) return `has more than ${secretCharactersMax} characters`;
  const { signature } = rule;
  if (use === 'receive' && signature.kind === 'token') {
    return fieldText.test(secret)
      ? undefined
      : `has a character that the field ${signature.header} cannot hold`;
  }
  const isBase64 =
    use === 'receive'
      ? signature.kind === 'hmac' && signature.key === 'base64'
      : handOn.kind === 'forward' && handOn.scheme === 'standard';
  return isBase64 && !isStandardKey(secret) ? 'must be "whsec_" and base64 with its padding' : undefined;
}

/** Why the secret is unwise, as the predicate of a sentence. */
export function weaknessOf(secret: string): string | undefined {
  const length = secret.startsWith(prefix) ? secret.length - prefix.length : secret.length;
  return length < secretCharactersAdvised
    ? `has fewer than ${secretCharactersAdvised} characters and could be guessed`
    : undefined;
}

function isStandardKey(secret: string): boolean {
  try {
    standardKey(secret);
    return true;
  } catch {
    // It throws for anything that is not a key; the caller reports the reason.
    return false;
  }
}

export type SecretUse = { readonly name: string; readonly use: 'receive' | 'forward' };

export type SecretPlace = SecretUse & { readonly sender: DeclaredSender; readonly variable: string };

/**
 * Every secret that the senders need, in the order of their declaration: one that verifies received messages, and one that signs forwarded
 * ones.
 */
export function secretPlaces(senders: Iterable<DeclaredSender>): readonly SecretPlace[] {
  return [...senders].flatMap((sender) => {
    const { name, secretVariable, handOn } = sender;
    const receive = { sender, name, use: 'receive', variable: secretVariable } as const;
    if (handOn.kind !== 'forward') return [receive];
    return [receive, { sender, name, use: 'forward', variable: handOn.secretVariable } as const];
  });
}
