/**
 * The collections that the program brings itself: accounts, API keys and the audit trail. They are declared like those of users, so lists,
 * QUERY, patches, conditions and OPTIONS are the same for them.
 */
import { Type } from 'typebox';
import { resolveAccounts } from '../config/accounts.ts';
import { resolveBuiltIn } from '../config/collections.ts';
import { hostGlobCharactersMax } from '../config/host-rules.ts';
import type { Collection } from '../model/collection.ts';
import { scopes } from '../model/principal.ts';

const nameCharactersMax = 200;
const scope = Type.Union(scopes.map((name) => Type.Literal(name)));

/** Accounts without fields of an application. */
export const usersCollection: Collection = resolveAccounts(undefined).users;

/** A key's own list is read with every verification, and kept with every one that is remembered. */
const keyHostGlobsMax = 100;
const hostGlobs = (description: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: hostGlobCharactersMax }), {
    maxItems: keyHostGlobsMax,
    description,
  });

export const keysCollection: Collection = resolveBuiltIn('keys', {
  description:
    'API keys. The response that creates or rotates a key shows it once; Comity stores only its digest.',
  schema: Type.Object({
    name: Type.String({ minLength: 1, maxLength: nameCharactersMax }),
    kind: Type.Union([Type.Literal('secret'), Type.Literal('publishable')]),
    scopes: Type.Optional(
      Type.Array(scope, {
        uniqueItems: true,
        description:
          'Must be scopes of the caller. Default: `read` and `write`. A publishable key has only `read`.',
      }),
    ),
    /** Without it, its owner's alone. */
    tunnel: Type.Optional(
      Type.Object(
        {
          mode: Type.Optional(
            Type.Union([Type.Literal('enforce'), Type.Literal('report')], {
              default: 'enforce',
              description: '`report`: Comity permits and logs connections that the lists would refuse.',
            }),
          ),
          allow: Type.Optional(
            hostGlobs('Permitted hosts: `api.example.com`, `*.example.com`, `192.0.2.1`, `*`. Default: all.'),
          ),
          deny: Type.Optional(hostGlobs('Refused hosts, even if `allow` permits them.')),
        },
        {
          additionalProperties: false,
          description:
            'Hosts that the key may tunnel to, in addition to the rules for its owner. Requires the scope `tunnel`.',
        },
      ),
    ),
    expiresAt: Type.Optional(
      Type.String({
        format: 'date-time',
        description: 'Must be in the future, and not after the expiry of the key that creates it.',
      }),
    ),
    /** The first characters, so that people know which key it is. */
    prefix: Type.Optional(Type.String()),
    /** The key that it was made with: revoking that one ends this one too. */
    madeBy: Type.Optional(Type.String()),
    lastUsedAt: Type.Optional(Type.String({ format: 'date-time' })),
  }),
  access: { read: 'owner', create: 'principal', update: 'owner', delete: 'owner' },
  unpatchable: ['kind', 'scopes', 'tunnel', 'prefix', 'madeBy', 'lastUsedAt'],
  examples: [{ name: 'Nightly import', kind: 'secret', scopes: ['read', 'write'] }],
});

export const auditCollection: Collection = resolveBuiltIn('audit', {
  description: 'The audit trail: changes of accounts and keys, and who made them.',
  schema: Type.Object({
    type: Type.String(),
    actor: Type.Optional(
      Type.Object({
        kind: Type.String(),
        id: Type.Union([Type.String(), Type.Null()]),
        keyId: Type.Optional(Type.String()),
      }),
    ),
    requestId: Type.Optional(Type.String()),
    subject: Type.Optional(Type.String()),
    address: Type.Optional(Type.String()),
    detail: Type.Optional(Type.Object({}, { additionalProperties: true })),
  }),
  access: {
    read: 'administrator',
    create: 'administrator',
    update: 'administrator',
    delete: 'administrator',
  },
  indexes: ['type', 'actor.id', 'subject'],
  search: ['type', 'actor', 'subject', 'address'],
});
