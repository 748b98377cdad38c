/** Registration, login, refresh, logout and who one is (§2.3, §5.4), as resources/accounts. */
import type { Components } from '../components.ts';
import type { Item } from '../item.ts';
import type { PathDescription } from '../path-item.ts';
import { plainRead } from '../traits.ts';
import {
  type AccountLimits,
  accountId,
  addAccount,
  addTokens,
  exampleEmail,
  takenContent,
  tokensExample,
} from './account-schemas.ts';
import { type Action, actionDescription } from './action.ts';

export const accountsTag = 'accounts';
/** A credential is needed, and any that is good will do as far as scopes and roles go. */
export const anyCredential = { anonymous: false, known: true } as const;

export type LoginOptions = {
  readonly base: string;
  readonly limits: AccountLimits;
  readonly components: Components;
  readonly registration: 'open' | 'closed';
  readonly verifiedEmailRequired: boolean;
};

export function loginPaths(options: LoginOptions): readonly PathDescription[] {
  const { base, components } = options;
  const taken = takenContent(options.limits);
  const tokens = addTokens(components);
  const path = (rest: string, name: string, noun: string, action: Omit<Action, 'tag'>): PathDescription => ({
    path: `${base}/auth/${rest}`,
    name,
    noun,
    operations: [actionDescription({ ...action, tag: accountsTag }, components)],
  });
  const login = { answer: tokens, answerExample: tokensExample, madeFields: ['Set-Cookie'] as const };
  const unverified = options.verifiedEmailRequired ? (['email_unverified'] as const) : [];
  const registered = options.verifiedEmailRequired
    ? {
        answer: addAccount(components),
        answerExample: { user: tokensExample.user },
        description:
          'Sends the mail that verifies the address: until that is done nobody can log in to the account.',
      }
    : {
        ...login,
        description: 'Sends the mail that verifies the address, where a mail server is configured.',
      };
  const closed = options.registration === 'closed' ? (['forbidden'] as const) : [];
  return [
    path('register', 'Registration', 'registration', {
      ...registered,
      id: 'register',
      summary: 'Make an account and log in to it',
      takes: ['Registration', taken.Registration],
      creates: true,
      codes: [...closed, 'cross_site_request', 'unique_taken', 'validation_failed'],
    }),
    path('login', 'Login', 'login', {
      ...login,
      id: 'login',
      summary: 'Log in',
      description:
        'An unknown address, a wrong password and a disabled account are the same answer. Failed logins are limited for each account and for each address.',
      takes: ['Login', taken.Login],
      codes: [...unverified, 'cross_site_request', 'invalid_credentials', 'rate_limited'],
    }),
    path('refresh', 'Refresh', 'the renewal of a session', {
      answer: tokens,
      answerExample: tokensExample,
      id: 'refresh',
      summary: 'Exchange a refresh token for a new pair of tokens',
      description: 'Each works once. One that comes again ends its session, on every process at once.',
      takes: ['Refresh', taken.Refresh],
      codes: ['invalid_token'],
    }),
    path('logout', 'Logout', 'logout', {
      id: 'logout',
      summary: 'End the session',
      description:
        'Access token, refresh token and cookie are dead at once. A key or a password belongs to no session: 403.',
      takes: ['Logout', taken.Logout],
      contentOptional: true,
      madeFields: ['Set-Cookie'],
      schemes: ['bearer', 'cookieAuth'],
      traits: { gate: anyCredential },
      codes: ['forbidden'],
    }),
    mePath(base, components),
  ];
}

function mePath(base: string, components: Components): PathDescription {
  const texts: Item = { type: 'array', items: { type: 'string' } };
  const schema = components.add('schemas', 'Me', {
    description: 'Who asks.',
    type: 'object',
    properties: {
      id: { type: 'string' },
      kind: { enum: ['user', 'key', 'administrator', 'external'] },
      email: { type: 'string' },
      name: { type: 'string' },
      roles: texts,
      scopes: texts,
      tenant: { type: ['string', 'null'] },
      authenticatedBy: { enum: ['key', 'token', 'issuer', 'password', 'session-cookie'] },
    },
    required: ['id', 'kind', 'roles', 'scopes', 'tenant', 'authenticatedBy'],
  });
  const example = {
    id: accountId,
    kind: 'user',
    email: exampleEmail,
    name: 'Ada',
    roles: [],
    scopes: ['read', 'write'],
    tenant: null,
    authenticatedBy: 'token',
  };
  return {
    path: `${base}/auth/me`,
    name: 'Me',
    noun: 'the caller',
    operations: [
      {
        id: 'readMe',
        tag: accountsTag,
        summary: 'Who the credential stands for',
        traits: { ...plainRead, gate: anyCredential, validators: 'none' },
        content: { representation: { 'application/json': { schema, example } } },
      },
    ],
  };
}
