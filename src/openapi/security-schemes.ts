/**
 * The carriers of credentials (§5.2) as security schemes. Each is an alternative: one credential is enough.
 */
import type { Components } from './components.ts';
import type { Item } from './item.ts';

const schemes: Readonly<Record<string, Item>> = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'A key or an access token.',
  },
  basic: {
    type: 'http',
    scheme: 'basic',
    description: 'A key as the user name, and an empty password.',
  },
  apiKey: { type: 'http', scheme: 'ApiKey', description: '`Authorization: ApiKey` or `Api-Key` with a key.' },
  apiKeyHeader: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
  apiKeyQuery: {
    type: 'apiKey',
    in: 'query',
    name: 'api_key',
    description: 'Least secure: addresses are logged and remembered.',
  },
};

/** Adds the schemes; gives the requirement of each. */
export function addSecuritySchemes(components: Components): readonly Item[] {
  return Object.entries(schemes).map(([name, scheme]) => {
    components.add('securitySchemes', name, scheme);
    return { [name]: [] };
  });
}
