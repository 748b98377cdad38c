/**
 * Whether a text can be a secret of a sender, and whether it is a good one. No sentence repeats any of it: who reads the sentence may not
 * be who may know the secret.
 */
import { standardKey } from '../../webhooks/signature/secret.ts';
import type { DeclaredSender } from '../senders.ts';
import type { SecretUse } from './secret-use.ts';

export const secretCharactersMax = 1024;
const secretCharactersAdvised = 16;
const prefix = 'whsec_';
/** What a header field can hold (RFC 9110 §5.5), spaces inside included. */
const fieldText = /^[!-~](?:[ -~]*[!-~])?$/;

/** Why the sender cannot have this secret, as the predicate of a sentence; undefined: it can. */
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
    // It throws for whatever is no key, and its sentence is said above.
    return false;
  }
}
