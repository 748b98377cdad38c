/** Schemas, examples, permissions and refusals that several operations of accounts share (§2.3, §5). */
import { Type } from 'typebox';
import type { Allowance } from '../http/message.ts';
import type { Problem } from '../http/problem.ts';
import type { ProblemCode } from '../http/problem-registry.ts';
import type { Done } from '../kernel/action.ts';
import { named, type Tag } from '../kernel/documentation.ts';
import { normalizeEmail } from '../mail/email.ts';
import { type Permission, permission } from '../model/access.ts';
import type { Principal, Scheme } from '../model/principal.ts';

export const accountsTag: Tag = {
  name: 'accounts',
  description: 'Logins, sessions, passwords and e-mail verification.',
};

export const emailSchema = Type.String({
  description: 'E-mail address; upper and lower case are the same.',
});
export const passwordSchema = Type.String({ format: 'password' });
export const codeSchema = Type.String({ description: 'The code from the mail. It works once.' });
export const cookieSchema = Type.Optional(
  Type.Boolean({ default: false, description: '`true`: the response also sets a session cookie.' }),
);

/** It is judged with the other members of an account, so that one answer names all faults: the keywords are for the API document. */
export function newPasswordSchema({ passwordCharactersMin, passwordBytesMax }: PasswordBounds) {
  return Type.String({
    format: 'password',
    description: `At least ${passwordCharactersMin} characters, at most ${passwordBytesMax} bytes of UTF-8; 422 otherwise.`,
    '~documented': { minLength: passwordCharactersMin, maxLength: passwordBytesMax },
  });
}

export const accountId = 'usr_01k1jx7v2mh5s8b4c9d0e6f3ga';
export const exampleEmail = 'ada@shop.example';
export const examplePassword = 'correct horse battery staple';
export const exampleFactorCode = '492039';
export const exampleChallenge = 'jH2c0Zr1mYw8n5QbR7sVtT4uXk9pLaGdEfIoCvBxNyM6';
export const exampleCode = 'q9Xw-3vJr0LkT8sYb2NdPz7uHf1MgAeCi5oVxRtK6jE';

const user = {
  type: 'object',
  properties: { id: { type: 'string' }, email: { type: 'string' } },
  required: ['id', 'email'],
};
const userExample = { id: accountId, email: exampleEmail };

const recoveryCodes = {
  type: 'array',
  items: { type: 'string' },
  description: 'Of a first passkey: shown once. Each replaces the passkey once.',
};

/** What an account is answered with where no session is opened. */
export const accountOutput = {
  schema: named('Account', {
    description: 'An account, without a session.',
    type: 'object',
    properties: { user, recoveryCodes },
    required: ['user'],
    additionalProperties: false,
  }),
  example: { user: userExample },
};

const tokens = {
  type: 'object',
  properties: {
    token: { type: 'string', description: 'Access token, for `Authorization: Bearer`.' },
    expiresIn: { type: 'integer', description: 'Seconds until the access token expires.' },
    refreshToken: {
      type: 'string',
      description:
        'Exchange it once for the next pair of tokens. A second use ends the session, because the token may be stolen.',
    },
    user,
  },
  required: ['token', 'expiresIn', 'refreshToken', 'user'],
};

/** What every login answers with. */
export const tokensOutput = {
  schema: named('Tokens', { description: 'A session.', ...tokens }),
  example: {
    token: 'eyJhbGciOiJFZERTQSIsInR5cCI6ImF0K2p3dCJ9.eyJzdWIiOiJ1c3JfLi4uIn0.c2lnbmF0dXJl',
    expiresIn: 900,
    refreshToken: 'rt_ses_01k1jx7v2mh5s8b4c9d0e6f3ga.ZmFtaWx5.c2VjcmV0',
    user: userExample,
  },
};

/** The response to a login with a new credential. */
export const enteredOutput = {
  schema: named('Entered', {
    ...{ description: 'A session, and the recovery codes of a new passkey.', ...tokens },
    properties: { ...tokens.properties, recoveryCodes },
  }),
  example: tokensOutput.example,
};

/** A new account has a password or a passkey. */
export function oneCredential(input: {
  readonly password?: unknown;
  readonly passkey?: unknown;
}): Problem | undefined {
  if ((input.password === undefined) !== (input.passkey === undefined)) return undefined;
  const message = 'give either a password or a passkey';
  if (input.password === undefined)
    return { code: 'field_missing', errors: [{ pointer: '/password', message }] };
  return { code: 'validation_failed', errors: [{ pointer: '/passkey', message }] };
}

/** Any credential that is good will do, as far as scopes and roles go. */
export function anyCredential(principal: Principal): Permission {
  return principal.kind === 'authenticated' ? 'granted' : 'denied';
}

/** Administrators alone; 403 for any other credential, and 401 without one. */
export function administratorsOnly(principal: Principal): Permission {
  return permission('administrator', 'read', principal);
}

/** Schemes of credentials that only a person has: a program uses a key. */
export const schemesOfPeople: ReadonlySet<Scheme> = new Set<Scheme>(['token', 'session-cookie', 'password']);

/** Why an operation on an account was refused. */
export type Refusal = { readonly problem: ProblemCode; readonly allowance?: Allowance };

export function refusedBy(refusal: Refusal): Done {
  const refused = { code: refusal.problem };
  return refusal.allowance === undefined ? { refused } : { refused, allowance: refusal.allowance };
}

/** The address in the content is none. */
export const emailFault: Problem = {
  code: 'validation_failed',
  errors: [{ pointer: '/email', message: 'must be an e-mail address, such as ada@example.com' }],
};

/** The fault of a content whose `email` is no address. */
export function checkEmail({ email }: { readonly email: string }): Problem | undefined {
  return normalizeEmail(email) === undefined ? emailFault : undefined;
}

/** One member of the content is at fault. @param pointer such as `/password` */
export function refusedField(pointer: string, message: string): Done {
  return { refused: { code: 'validation_failed', errors: [{ pointer, message }] } };
}

// Rules for a new password (§5.4, RFC 8265 §4.2): its length, and no characters that a client could not send. There are no rules of
// composition.

type PasswordBounds = { readonly passwordCharactersMin: number; readonly passwordBytesMax: number };

/** Basic credentials cannot contain them (RFC 7617 §2). */
const control = /\p{Cc}/u;

export function newPasswordFault(password: string, bounds: PasswordBounds): string | undefined {
  const { passwordCharactersMin, passwordBytesMax } = bounds;
  // Before any work on a text of unbounded length.
  if (password.length > passwordBytesMax) return `must be at most ${passwordBytesMax} bytes long`;
  const composed = password.normalize('NFC');
  if (Buffer.byteLength(composed) > passwordBytesMax) return `must be at most ${passwordBytesMax} bytes long`;
  if (!password.isWellFormed() || control.test(password)) return 'must not contain control characters';
  // As it was sent too, so that `minLength` in the API document is exact: a few letters become two when they are composed.
  if (Math.min([...composed].length, [...password].length) < passwordCharactersMin) {
    return `must be at least ${passwordCharactersMin} characters long`;
  }
  return undefined;
}
