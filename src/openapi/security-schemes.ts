/**
 * The carriers of credentials (§5.2) as security schemes. Each is an alternative: one credential is enough, and two are refused.
 */
import type { Components } from './components.ts';
import type { Item } from './item.ts';

const schemes = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'An access token of a login or of a trusted issuer, or a key.',
  },
  basic: {
    type: 'http',
    scheme: 'basic',
    description:
      'E-mail address and password of an account, or a key as the user name and an empty password.',
  },
  apiKey: { type: 'http', scheme: 'ApiKey', description: '`Authorization: ApiKey` or `Api-Key` with a key.' },
  apiKeyHeader: { type: 'apiKey', in: 'header', name: 'X-API-Key', description: 'A key.' },
  apiKeyQuery: {
    type: 'apiKey',
    in: 'query',
    name: 'api_key',
    description: 'A key. Least secure: addresses are logged and remembered.',
  },
  cookieAuth: {
    type: 'apiKey',
    in: 'cookie',
    name: '__Host-comity_session',
    description:
      'The session that a login with `cookie` opened. Ignored beside any other credential; unsafe requests with it are refused when a page of a foreign origin sent them.',
  },
} as const satisfies Record<string, Item>;

export type SchemeName = keyof typeof schemes;

/** Adds the schemes; gives the requirement of each. */
export function addSecuritySchemes(components: Components): readonly Item[] {
  return Object.entries(schemes).map(([name, scheme]) => {
    components.add('securitySchemes', name, scheme);
    return { [name]: [] };
  });
}
