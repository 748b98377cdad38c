/** Sign-in by an OpenID or OAuth 2.0 provider (§5.3), where any is configured. */
import type { Components } from '../components.ts';
import type { Item } from '../item.ts';
import type { Description } from '../operation.ts';
import type { PathDescription } from '../path-item.ts';
import { plainRead, type Traits } from '../traits.ts';
import { addAccount, addTokens, tokensExample } from './account-schemas.ts';
import { accountsTag } from './login-paths.ts';

export type SignInOptions = {
  readonly base: string;
  readonly components: Components;
  /** Names of the providers, as in the path. */
  readonly providers: readonly string[];
};

export function signInPaths({ base, components, providers }: SignInOptions): readonly PathDescription[] {
  const provider: Item = {
    name: 'provider',
    in: 'path',
    required: true,
    description: 'One of the configured providers; 404 for any other.',
    schema: { type: 'string', ...(providers.length === 0 ? {} : { enum: providers }) },
  };
  return [
    {
      path: `${base}/auth/oauth/{provider}`,
      name: 'SignIn',
      noun: 'a sign-in by a provider',
      parameters: [provider],
      operations: [start],
    },
    {
      path: `${base}/auth/oauth/{provider}/callback`,
      name: 'SignInCallback',
      noun: 'the end of a sign-in',
      parameters: [provider],
      operations: [callbackDescription(components)],
    },
  ];
}

const traits: Traits = { ...plainRead, mayBeMissing: true, validators: 'none' };
const shared = { tag: accountsTag, madeFields: ['Set-Cookie'] } as const;

const start: Description = {
  ...shared,
  id: 'startSignIn',
  summary: 'Go to the provider',
  description: '303 to its authorization page (OAuth 2.0 code flow with PKCE, state and nonce).',
  traits: {
    ...traits,
    redirects: 'always',
    // Linking takes a session.
    mayBeClosed: true,
    proposalCodes: ['provider_unavailable', 'query_parameter_invalid'],
  },
  parameters: [
    parameter('redirect', {
      description:
        'Where the browser goes after the callback, with a session cookie: a path of this origin, or an address at an origin that may read answers with credentials. Without it the callback answers with tokens.',
      schema: { type: 'string' },
    }),
    parameter('link', {
      description:
        'Links the identity to the account that is logged in, by its session: 403 by any other credential or from a page of another site.',
      schema: { const: 'true' },
    }),
  ],
};

function callbackDescription(components: Components): Description {
  return {
    ...shared,
    id: 'finishSignIn',
    summary: 'Come back from the provider',
    description:
      'Where the provider sends the browser. 303 to where the sign-in was to lead, with a session cookie; 200 with tokens where it was to lead nowhere, or with the account alone where an identity was linked to it. A HEAD finishes nothing: 400.',
    traits: {
      ...traits,
      redirects: 'sometimes',
      proposalCodes: [
        'account_exists',
        'forbidden',
        'email_unverified',
        'provider_unavailable',
        'sign_in_invalid',
      ],
    },
    parameters: ['code', 'state', 'iss', 'error', 'error_description'].map((name) =>
      parameter(name, { description: 'From the provider.', schema: { type: 'string' } }),
    ),
    content: {
      representation: {
        'application/json': {
          schema: { anyOf: [addTokens(components), addAccount(components)] },
          example: tokensExample,
        },
      },
    },
    representationFields: ['Set-Cookie'],
  };
}

function parameter(name: string, rest: Item): Item {
  return { name, in: 'query', ...rest };
}
