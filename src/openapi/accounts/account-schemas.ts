/**
 * What the operations of accounts take and answer (§2.3, §5), as schemas. What they take is written a second time here, because this
 * room may not import that of the resources; test/openapi holds each to the schema that judges requests.
 */
import type { Components } from '../components.ts';
import type { Item } from '../item.ts';

/** As settings of the same names. */
export type AccountLimits = {
  readonly passwordCharactersMin: number;
  readonly passwordBytesMax: number;
  readonly keyOverlapSecondsMax: number;
};

export const accountId = 'usr_01k1jx7v2mh5s8b4c9d0e6f3ga';
export const exampleEmail = 'ada@shop.example';
const code = 'q9Xw-3vJr0LkT8sYb2NdPz7uHf1MgAeCi5oVxRtK6jE';

const email: Item = { type: 'string', description: 'E-mail address; capitals make no difference.' };
const cookie: Item = { type: 'boolean', description: '`true`: the answer sets a session cookie besides.' };
const password: Item = { type: 'string', format: 'password' };
const mailedCode: Item = { type: 'string', description: 'The code of the mail. Good once.' };

const user: Item = {
  type: 'object',
  properties: { id: { type: 'string' }, email: { type: 'string' } },
  required: ['id', 'email'],
};

/** Adds what stands where no session was opened. */
export function addAccount(components: Components): Item {
  return components.add('schemas', 'Account', {
    description: 'An account, without a session.',
    type: 'object',
    properties: { user },
    required: ['user'],
    additionalProperties: false,
  });
}

/** Adds what every login answers with. */
export function addTokens(components: Components): Item {
  return components.add('schemas', 'Tokens', {
    description: 'A session (§2.3).',
    type: 'object',
    properties: {
      token: { type: 'string', description: 'Access token, for `Authorization: Bearer`.' },
      expiresIn: { type: 'integer', description: 'Seconds until the access token ends.' },
      refreshToken: {
        type: 'string',
        description: 'Gets the next pair, once. Sent again, it ends the session: somebody else has it.',
      },
      user,
    },
    required: ['token', 'expiresIn', 'refreshToken', 'user'],
  });
}

export const tokensExample: Item = {
  token: 'eyJhbGciOiJFZERTQSIsInR5cCI6ImF0K2p3dCJ9.eyJzdWIiOiJ1c3JfLi4uIn0.c2lnbmF0dXJl',
  expiresIn: 900,
  refreshToken: 'rt_ses_01k1jx7v2mh5s8b4c9d0e6f3ga.ZmFtaWx5.c2VjcmV0',
  user: { id: accountId, email: exampleEmail },
};

/** Content that an operation takes, with an example of it. */
export type Taken = { readonly schema: Item; readonly example: Item };

export type TakenName =
  | 'Registration'
  | 'Login'
  | 'Refresh'
  | 'Logout'
  | 'PasswordChange'
  | 'PasswordSet'
  | 'VerificationRequest'
  | 'VerificationCode'
  | 'PasswordResetRequest'
  | 'PasswordReset'
  | 'KeyCreation'
  | 'KeyRotation';

export function takenContent(limits: AccountLimits): Readonly<Record<TakenName, Taken>> {
  const newPassword: Item = {
    ...password,
    description: `At least ${limits.passwordCharactersMin} characters, at most ${limits.passwordBytesMax} bytes of UTF-8; 422 otherwise.`,
  };
  const example = 'correct horse battery staple';
  return {
    Registration: {
      schema: object({ email, password: newPassword, name: nameSchema, cookie }, ['email', 'password']),
      example: { email: exampleEmail, password: example, name: 'Ada' },
    },
    Login: {
      schema: object({ email, password, cookie }, ['email', 'password']),
      example: { email: exampleEmail, password: example },
    },
    Refresh: {
      schema: object({ refreshToken: { type: 'string' } }, ['refreshToken']),
      example: { refreshToken: tokensExample.refreshToken },
    },
    Logout: {
      schema: object({
        everywhere: { type: 'boolean', description: '`true`: ends all sessions of the account.' },
      }),
      example: { everywhere: true },
    },
    PasswordChange: {
      schema: object({ currentPassword: password, newPassword }, ['currentPassword', 'newPassword']),
      example: { currentPassword: example, newPassword: 'a much better one' },
    },
    PasswordSet: { schema: object({ password: newPassword }, ['password']), example: { password: example } },
    VerificationRequest: { schema: object({ email }), example: { email: exampleEmail } },
    VerificationCode: { schema: object({ code: mailedCode }, ['code']), example: { code } },
    PasswordResetRequest: { schema: object({ email }, ['email']), example: { email: exampleEmail } },
    PasswordReset: {
      schema: object({ code: mailedCode, password: newPassword }, ['code', 'password']),
      example: { code, password: example },
    },
    KeyCreation: keyCreation,
    KeyRotation: {
      schema: object({
        overlapSeconds: {
          type: 'integer',
          minimum: 0,
          maximum: limits.keyOverlapSecondsMax,
          default: 0,
          description: 'How long the text that is replaced stays good beside the new one.',
        },
      }),
      example: { overlapSeconds: 3600 },
    },
  };
}

const nameSchema: Item = { type: 'string', minLength: 1, maxLength: 200 };

const hostList: Item = {
  type: 'array',
  items: { type: 'string', minLength: 1, maxLength: 1024 },
  maxItems: 100,
};

const keyCreation: Taken = {
  schema: object(
    {
      name: nameSchema,
      kind: { enum: ['secret', 'publishable'] },
      scopes: {
        type: 'array',
        items: { enum: ['read', 'write', 'webhooks', 'tunnel', 'admin'] },
        uniqueItems: true,
        description:
          'Never more than the caller has. Without it `read` and `write`; a publishable key has `read` and can have nothing else.',
      },
      tunnel: {
        description:
          'Hosts that it may tunnel to, besides what holds for its owner; with the scope `tunnel` alone.',
        ...object({
          mode: {
            enum: ['enforce', 'report'],
            default: 'enforce',
            description: '`report`: what the lists refuse is let through and logged.',
          },
          allow: {
            ...hostList,
            description:
              'Hosts that are let through: `api.example.com`, `*.example.com`, `192.0.2.1`, `*`. Without it, all.',
          },
          deny: { ...hostList, description: 'Hosts that are not, whatever is allowed.' },
        }),
      },
      expiresAt: {
        type: 'string',
        format: 'date-time',
        description: 'Must lie ahead, and not beyond the end of the key that makes it.',
      },
    },
    ['name', 'kind'],
  ),
  example: { name: 'Nightly import', kind: 'secret', scopes: ['read', 'write'] },
};

function object(properties: Readonly<Record<string, Item>>, required: readonly string[] = []): Item {
  return {
    type: 'object',
    properties,
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: false,
  };
}
