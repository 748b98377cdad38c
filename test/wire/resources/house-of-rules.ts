/**
 * A program with collections for every kind of access rule, on either store, and people to ask it: `Authorization: Bearer NAME`.
 * Everything goes through real sockets; only who a name stands for is the test's own.
 */

import { Type } from 'typebox';
import { resolveConfiguration } from '../../../src/config/configuration.ts';
import { allow } from '../../../src/model/access-function.ts';
import { type Authenticated, anonymous, authenticated } from '../../../src/model/principal.ts';
import { openPostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import type { EngineName } from '../../harness/engine-names.ts';
import { databaseWith, type TestDatabase } from '../../harness/postgres-database.ts';
import { knownAs } from '../../resources/known.ts';
import { openShop, type Shop, type ShopOptions } from './shop-of-many.ts';

const post = Type.Object({
  title: Type.String(),
  published: Type.Optional(Type.Boolean()),
  region: Type.Optional(Type.String()),
  place: Type.Optional(Type.Object({ city: Type.Optional(Type.String()) })),
});

const titled = Type.Object({ title: Type.String() });

export const configuration = resolveConfiguration({
  collections: {
    papers: {
      schema: titled,
      access: { read: { role: 'editor' }, update: { role: 'editor' }, delete: { role: 'editor' } },
    },
    hooks: {
      schema: titled,
      access: { read: { scope: 'webhooks' }, update: { scope: 'webhooks' }, delete: { scope: 'webhooks' } },
    },
    offices: {
      schema: Type.Object({ title: Type.String(), tenantId: Type.Optional(Type.String()) }),
      tenantField: 'tenantId',
      access: { read: 'tenant', create: 'tenant', update: 'tenant', delete: 'tenant' },
    },
    desks: {
      schema: Type.Object({
        title: Type.String(),
        officeId: Type.String(),
        backupId: Type.Optional(Type.String()),
      }),
      references: { officeId: { collection: 'offices' }, backupId: { collection: 'offices' } },
      hidden: { backupId: { role: 'planner' } },
      access: { read: 'owner', create: 'principal', update: 'owner', delete: 'owner' },
    },
    loans: {
      schema: Type.Object({ title: Type.String(), officeId: Type.Optional(Type.String()) }),
      references: { officeId: { collection: 'offices' } },
      access: { read: 'owner', create: 'principal', update: 'owner', delete: 'owner' },
      putCreates: true,
      softDelete: true,
    },
    leases: {
      schema: Type.Object({ title: Type.String(), tenantId: Type.Optional(Type.String()) }),
      tenantField: 'tenantId',
      access: { read: 'principal', create: 'principal', update: 'tenant', delete: 'principal' },
      putCreates: true,
      softDelete: true,
    },
    notices: {
      schema: titled,
      access: { read: 'public', create: 'principal', update: 'principal', delete: 'owner' },
      putCreates: true,
      softDelete: true,
    },
    posts: {
      schema: post,
      access: {
        read: allow<typeof post>(
          (principal, resource) =>
            principal.roles.has('editor') ||
            resource.published
              .is(true)
              .or(resource.owner.is(principal.id), resource.region.in(principal.roles))
              .or(resource.place.city.is(principal.tenant)),
        ),
        create: allow<typeof post>(
          (principal, resource) =>
            principal.id !== null && (principal.roles.has('editor') || resource.published.is(true).not()),
        ),
        update: allow<typeof post>((principal, resource) => resource.owner.is(principal.id)),
        delete: allow<typeof post>((principal, resource) => resource.owner.is(principal.id)),
      },
      putCreates: true,
    },
    staff: {
      schema: Type.Object({
        name: Type.String(),
        status: Type.Optional(Type.String({ default: 'new' })),
        salary: Type.Optional(Type.Number()),
        note: Type.Optional(Type.String()),
      }),
      access: { read: 'public', create: 'principal', update: 'principal', delete: 'principal' },
      readOnly: { status: { role: 'hr' } },
      hidden: { salary: { anyOf: ['owner', { role: 'hr' }] }, note: { role: 'hr' } },
      putCreates: true,
    },
  },
});

function person(
  id: string,
  parts: Partial<Omit<Parameters<typeof authenticated>[0], 'id'>> = {},
): Authenticated {
  return authenticated({ id, scopes: ['read', 'write'], ...parts });
}

/** Who may ask. */
export const people: ReadonlyMap<string, Authenticated> = new Map([
  // A credential of hers that may less.
  ['hana-by-key', person('hana')] as const,
  ...[
    person('ada'),
    person('bob'),
    person('ed', { roles: ['editor'] }),
    person('hana', { roles: ['hr'] }),
    person('pia', { roles: ['planner'] }),
    person('webb', { scopes: ['read', 'write', 'webhooks'] }),
    person('nora', { tenant: 'north' }),
    person('nils', { tenant: 'north', roles: ['east'] }),
    person('sven', { tenant: 'south' }),
    person('root', { scopes: ['admin'] }),
  ].map((principal) => [principal.id, principal] as const),
]);

/** @param declared what is served, where that is not the house */
export async function openHouse(
  engine: EngineName,
  declared: Pick<ShopOptions, 'configuration' | 'settings' | 'clockMs'> = {},
): Promise<Shop> {
  let database: TestDatabase | undefined;
  const shop = await openShop({
    configuration,
    ...declared,
    identify: (authorization) => {
      if (authorization === undefined) return { principal: anonymous };
      const known = people.get(authorization.replace('Bearer ', ''));
      return known === undefined ? { problem: 'invalid_token' } : knownAs(known);
    },
    ...(engine === 'SQLite'
      ? {}
      : {
          async openStore(tables) {
            database = await databaseWith(tables);
            return openPostgresStore({ url: database.url, tables });
          },
        }),
  });
  return {
    ...shop,
    async stop() {
      await shop.stop();
      await database?.dispose();
    },
  };
}
