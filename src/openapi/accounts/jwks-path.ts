/** The public keys that verify access tokens, and deliveries of the scheme `standard` (RFC 7517, §5.6). */
import type { Components } from '../components.ts';
import type { PathDescription } from '../path-item.ts';
import { plainRead } from '../traits.ts';
import { accountsTag } from './login-paths.ts';

export function jwksPath(components: Components): PathDescription {
  const schema = components.add('schemas', 'JwkSet', {
    description: 'Keys that sign access tokens and deliveries now, did so lately, or will soon.',
    type: 'object',
    properties: {
      keys: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            kty: { type: 'string' },
            kid: { type: 'string' },
            alg: { type: 'string' },
            use: { const: 'sig' },
          },
          required: ['kty', 'kid', 'alg', 'use'],
        },
      },
    },
    required: ['keys'],
  });
  const example = {
    keys: [
      {
        kty: 'OKP',
        crv: 'Ed25519',
        x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
        kid: '01k1jx7v2mh5s8b4c9d0e6f3ga',
        alg: 'EdDSA',
        use: 'sig',
      },
    ],
  };
  return {
    path: '/.well-known/jwks.json',
    name: 'JwkSet',
    noun: 'the public keys',
    operations: [
      {
        id: 'readJwkSet',
        tag: accountsTag,
        summary: 'The keys that verify access tokens and deliveries',
        traits: { ...plainRead, unlimited: true },
        content: {
          representation: {
            'application/jwk-set+json': { schema, example },
            'application/json': { schema, example },
          },
        },
      },
    ],
  };
}
