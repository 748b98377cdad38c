/** Rules of the application in the document: who is refused, what single fields are to whom, and that no rule itself is told. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import { resolveCollections } from '../../src/config/collections.ts';
import type { Access, Action } from '../../src/model/access.ts';
import { allow } from '../../src/model/access-function.ts';
import type { CollectionDeclaration } from '../../src/model/collection.ts';
import { memberStanding } from '../../src/openapi/resource-path.ts';
import { documentOf, faults, type Item, isOpen, operation } from './fixture.ts';

const schema = Type.Object({
  title: Type.String(),
  company: Type.String(),
  margin: Type.Number({ description: 'What we earn.' }),
  state: Type.Optional(Type.String({ default: 'open' })),
});

function documentWith(declaration: Partial<CollectionDeclaration>): Item {
  return documentOf(resolveCollections({ offers: { schema, ...declaration } }));
}

const guarded = documentWith({
  access: { read: 'tenant', create: { role: 'seller' }, update: { role: 'seller' }, delete: 'owner' },
  tenantField: 'company',
  hidden: { margin: { role: 'controller' } },
  readOnly: { state: 'administrator' },
  examples: [{ title: 'Kettles', company: 'acme', margin: 12 }],
});

const schemasOf = (document: Item) => (document.components as { schemas: Record<string, Item> }).schemas;

const propertyOf = (document: Item, name: string, field: string) =>
  ((schemasOf(document)[name]?.properties ?? {}) as Record<string, Item>)[field] ?? {};

test('says of a field that it is read-only, hidden or the tenant, besides what its schema says', () => {
  assert.match(String(propertyOf(guarded, 'Offer', 'margin').description), /^What we earn\. Absent for/);
  assert.match(String(propertyOf(guarded, 'Offer', 'state').description), /^Read-only for/);
  assert.match(String(propertyOf(guarded, 'OfferInput', 'company').description), / Tenant of the resource/);
  assert.equal(propertyOf(guarded, 'Offer', 'title').description, undefined);
});

test('has what people call documents and members, in the order of the groups', () => {
  const document = documentWith({
    labels: { one: 'Offer', many: 'Offers of ours', members: { margin: 'Our margin' } },
    help: { margin: 'Never shown to customers.' },
    title: '{title} for {company}',
    groups: { Money: ['margin'], Other: ['state', 'title'] },
    display: { margin: 'percent', state: { inLists: false } },
  });
  const { Offer = {}, OfferInput = {}, OfferPatch = {} } = schemasOf(document);
  assert.equal(Offer.title, 'Offer');
  assert.deepEqual(Offer['x-presentation'], {
    many: 'Offers of ours',
    title: '{title} for {company}',
    groups: [
      { heading: 'Money', members: ['margin'] },
      { heading: 'Other', members: ['state', 'title'] },
    ],
  });
  assert.deepEqual(Object.keys(OfferInput.properties as Item), ['margin', 'state', 'title', 'company']);
  const margin = {
    type: 'number',
    title: 'Our margin',
    description: 'Never shown to customers. What we earn.',
    'x-display': { as: 'percent' },
  };
  for (const { properties } of [Offer, OfferInput, OfferPatch])
    assert.deepEqual((properties as Item).margin, margin);
  const tag = (document.tags as Item[]).find(({ name }) => name === 'offers');
  assert.deepEqual(tag, { name: 'offers', summary: 'Offers of ours', 'x-displayName': 'Offers of ours' });
  assert.deepEqual(
    faults(document, { $ref: '#/components/schemas/OfferInput' }, { title: 'a', company: 'b', margin: 1 }),
    [],
  );
});

test('requires nothing of a representation that some callers do not see, and nothing of content that the server fills in', () => {
  const resource = {
    id: 'a',
    title: 'Kettles',
    company: 'acme',
    createdAt: '2026-08-01T09:30:00.000Z',
    updatedAt: '2026-08-01T09:30:00.000Z',
  };
  const whole = { $ref: '#/components/schemas/Offer' };
  assert.deepEqual(faults(guarded, whole, resource), []);
  assert.deepEqual(faults(guarded, whole, { ...resource, margin: 3 }), []);
  assert.notDeepEqual(faults(guarded, whole, { ...resource, company: undefined }), []);
  assert.deepEqual(schemasOf(guarded).OfferInput?.required, ['title']);
});

test('tells no rule, no role and no text of a function', () => {
  const ruled = documentWith({ access: { read: allow(() => 'closed-shop' === String(0)) } });
  const text = JSON.stringify(guarded) + JSON.stringify(ruled);
  for (const secret of ['seller', 'controller', 'closed-shop']) assert(!text.includes(secret), secret);
});

type Conduct = Partial<CollectionDeclaration> & { readonly access: Partial<Access> };

function traitsOf(action: Action, declaration: Conduct) {
  const offers = resolveCollections({ offers: { schema, ...declaration } }).get('offers');
  assert(offers);
  const { mayBeHidden, mayBeClosed } = memberStanding({ collection: offers, action }, false);
  return [mayBeHidden ? 'hidden' : '', mayBeClosed ? 'closed' : ''].join(' ').trim();
}

test('knows where a resource is hidden from whom it lets pass, and where it is closed to him', () => {
  const seller = { role: 'seller' } as const;
  const table: readonly (readonly [Action, Conduct, string])[] = [
    ['read', { access: { read: 'public' } }, ''],
    ['read', { access: { read: 'owner' } }, 'hidden'],
    // Who has the role sees all, who has not is refused before anything is looked at.
    ['read', { access: { read: seller } }, ''],
    ['read', { access: { read: { scope: 'webhooks' } } }, ''],
    ['read', { access: { read: { anyOf: ['owner', seller] } } }, 'hidden'],
    ['read', { access: { read: { anyOf: ['owner', seller] } }, conceal: false }, 'closed'],
    ['read', { access: { read: 'tenant' }, tenantField: 'company' }, 'hidden'],
    ['read', { access: { read: allow(() => true) } }, 'hidden'],
    ['update', { access: { read: 'public', update: seller } }, ''],
    ['update', { access: { read: 'public', update: 'owner' } }, 'closed'],
    ['update', { access: { read: 'public', update: { anyOf: ['owner', seller] } } }, 'closed'],
    ['update', { access: { read: 'tenant', update: seller }, tenantField: 'company' }, 'hidden'],
    ['delete', { access: { read: 'public', delete: allow(() => true) } }, 'closed'],
  ];
  for (const [action, declaration, expected] of table)
    assert.equal(traitsOf(action, declaration), expected, JSON.stringify([action, declaration]));
});

test('asks a function about callers without a credential, so that public reads stay open in the document', () => {
  const opens = (document: Item) => isOpen(document, operation(document, 'get', '/api/v1/offers'));
  assert.equal(opens(documentWith({ access: { read: allow(() => true) } })), true);
  assert.equal(
    opens(documentWith({ access: { read: allow((principal) => principal.kind === 'authenticated') } })),
    false,
  );
});
