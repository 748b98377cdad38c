/**
 * GET /.well-known/jwks.json (RFC 7517 §5, RFC 8615): the public keys that our signatures are checked with, for anyone. A copy may be
 * kept for less time than a key is published before it signs, so no one meets a signature whose key could not be known.
 */
import { preferredMediaType } from '../../http/syntax/accept.ts';
import { named } from '../../kernel/documentation.ts';
import type { Operation, Proposal, Resource, Standing } from '../../kernel/resource.ts';
import { contentTag } from '../../resources/program/document.ts';
import { accountsTag } from '../account-schemas.ts';

export type PublishedKeys = {
  /** Public keys, as entries of the set. */
  published(): readonly object[];
  /** How long a copy may be kept. */
  readonly publishedSeconds: number;
};

/** Many clients ask for the second, and the first is JSON too. */
const offers = ['application/jwk-set+json', 'application/json'] as const;
const standing: Standing = { exists: true, visible: true, permitted: true };

const jwkSet = {
  schema: named('JwkSet', {
    description:
      'Public keys of access tokens and deliveries: the current ones, the previous ones and the next ones.',
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
  }),
  example: {
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
  },
};

type Set_ = Proposal & { readonly content: string; readonly tag: string };

export function jwksResource(rings: readonly PublishedKeys[]): Resource {
  const cacheControl = `public, max-age=${Math.min(...rings.map((ring) => ring.publishedSeconds))}`;
  const operation: Operation<Standing, never, Set_> = {
    documentation: {
      id: 'readJwkSet',
      summary: 'Read the public keys that verify access tokens and deliveries',
      gives: { representation: Object.fromEntries(offers.map((type) => [type, jwkSet])) },
    },
    permission: () => 'granted',
    standing: () => standing,
    propose: () => {
      const content = JSON.stringify({ keys: rings.flatMap((ring) => ring.published()) });
      return { problem: null, content, tag: contentTag(content) };
    },
    validators: (_ask, _standing, proposal) => ({
      tag: proposal?.tag ?? null,
      modifiedAt: null,
      cacheControl,
    }),
    represent: (ask, _standing, proposal) => ({
      content: proposal?.content ?? '',
      mediaType: preferredMediaType(ask.request.fields.accept, offers) ?? offers[0],
      validators: { tag: proposal?.tag ?? null, modifiedAt: null },
      cacheControl,
    }),
  };
  return {
    pattern: '/.well-known/jwks.json',
    documentation: { name: 'JwkSet', noun: 'the public keys', tag: accountsTag },
    operations: new Map([['GET', operation as Operation]]),
    constantFields: [],
    offers,
    unlimited: true,
  };
}
