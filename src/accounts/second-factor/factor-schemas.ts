/** Schemas that several operations of the second factor share, and who may call them. */
import { Type } from 'typebox';
import type { Done } from '../../kernel/action.ts';
import { named } from '../../kernel/documentation.ts';
import type { Ask } from '../../kernel/resource.ts';
import { examplePassword, passwordSchema, refusedBy, schemesOfPeople } from '../account-schemas.ts';
import { type AddressOf, fromOf } from '../audit-fact.ts';
import type { ChangedFactor, FactorOwner } from './change-factor.ts';
import { assertionSchema } from './passkeys/passkey-schemas.ts';

export const factorCodeSchema = Type.String({
  description:
    'A code of the authenticator application, which works once, or a recovery code, which works once.',
});

/** What proves that the owner of the account asks, besides the session. */
export const proofMembers = {
  password: Type.Optional(passwordSchema),
  code: Type.Optional(factorCodeSchema),
  passkey: Type.Optional(
    Type.Object(
      { challenge: Type.String(), response: assertionSchema },
      { description: 'A passkey, with the challenge of `/auth/second-factor/passkey-options`.' },
    ),
  ),
};

export const proofExample = { password: examplePassword };

export const proofDescription =
  'Needs a `code` or a `passkey` if the account has a second factor, otherwise its `password`, if it has one.';

export const proofCodes = [
  ...(['forbidden', 'invalid_credentials', 'rate_limited', 'challenge_invalid'] as const),
  ...(['second_factor_required', 'second_factor_invalid', 'passkey_invalid'] as const),
] as const;

export const recoveryCodesSchema = {
  type: 'array',
  items: { type: 'string' },
  description: 'Recovery codes, shown once. Each replaces the second factor once.',
};

export const exampleRecoveryCodes = ['9w3k-7zqm-2c4d-x8vn', 'h5tr-0b6y-pj1s-e4ga'];

export const shownCodesOutput = {
  schema: named('RecoveryCodes', {
    description: 'Recovery codes of an account.',
    type: 'object',
    properties: { recoveryCodes: recoveryCodesSchema },
  }),
  example: { recoveryCodes: exampleRecoveryCodes },
};

/** The account of the caller; undefined for a key and for a token of an issuer, which are not a person at this service. */
export function ownerOfAsk({ known, request }: Ask, addressOf: AddressOf): FactorOwner | undefined {
  if (known === undefined || !schemesOfPeople.has(known.scheme)) return undefined;
  return { userId: known.principal.id, session: known.session, ...fromOf(request, addressOf) };
}

export const peopleOnly: Done = {
  refused: {
    code: 'forbidden',
    message: 'this credential cannot read or change a second factor; log in to the account',
  },
};

export function doneOf<T extends Readonly<Record<string, unknown>> | null>(changed: ChangedFactor<T>): Done {
  return changed.ok ? { content: changed.result } : refusedBy(changed);
}
