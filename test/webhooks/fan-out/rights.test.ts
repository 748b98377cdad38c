/** Who is told of which events: by the rights of the owner, the scopes of the credential and the tenant. Nothing leaks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Field } from '../../../src/model/field.ts';
import { matches, memberAt } from '../../../src/model/matches.ts';
import type { Scope } from '../../../src/model/principal.ts';
import { visibleEvents } from '../../../src/resources/events/visible-events.ts';
import type { EventEntry } from '../../../src/store/store.ts';
import {
  createEventRights,
  createMatcher,
  createWants,
} from '../../../src/webhooks/sending/fan-out/matcher.ts';
import type { KnownEndpoint } from '../../../src/webhooks/sending/known-endpoint.ts';
import { collections, eventOf, knownOf, people, usualScopes } from './fixture.ts';

const rights = createEventRights(collections);
const wants = createWants(collections);

function matcherOf(all: Iterable<KnownEndpoint>) {
  const matcher = createMatcher(rights);
  for (const known of all) matcher.change(undefined, known);
  return matcher;
}

/** Owners of the endpoints that are told, of one endpoint for everything of each person. */
function toldOf(event: EventEntry, scopes: readonly Scope[] = usualScopes): readonly (string | null)[] {
  const all = people.map((id) => knownOf(id, {}, scopes));
  const found = matcherOf(all).matching(event).groups.flat();
  for (const known of all) assert.equal(wants(known, event), found.includes(known));
  return found.map(({ owner }) => owner).sort();
}

const everyone = [...people].sort();

test('tells everyone of what anyone may read', () => {
  assert.deepEqual(toldOf(eventOf('products.created', { owner: 'usr_ada' })), everyone);
});

test('tells of a private note its owner and administrators alone', () => {
  assert.deepEqual(toldOf(eventOf('notes.created', { owner: 'usr_ada' })), ['usr_ada', 'usr_root']);
  assert.deepEqual(toldOf(eventOf('notes.deleted', { owner: 'usr_gone' })), ['usr_root']);
  assert.deepEqual(toldOf(eventOf('notes.deleted')), ['usr_root']);
});

test('tells members of a tenant of its resources', () => {
  assert.deepEqual(toldOf(eventOf('offices.updated', { object: { tenantId: 'north' } })), [
    'usr_nora',
    'usr_root',
  ]);
  assert.deepEqual(toldOf(eventOf('offices.updated', { object: {} })), ['usr_root']);
});

test('judges by the snapshot in the event', () => {
  const draft = eventOf('articles.created', { owner: 'usr_ada', object: { published: false } });
  assert.deepEqual(toldOf(draft), ['usr_ada', 'usr_root']);
  assert.deepEqual(
    toldOf(eventOf('articles.updated', { owner: 'usr_ada', object: { published: true } })),
    everyone,
  );
});

test('tells bearers of a role what the role may read', () => {
  assert.deepEqual(toldOf(eventOf('audits.created')), ['usr_audra', 'usr_root']);
});

test('tells of a posted event its owner, its tenant and administrators', () => {
  assert.deepEqual(toldOf(eventOf('invoice.paid', { owner: 'usr_bob' })), ['usr_bob', 'usr_root']);
  const ofNorth = eventOf('invoice.paid', { owner: 'usr_bob', tenant: 'north' });
  assert.deepEqual(toldOf(ofNorth), ['usr_bob', 'usr_nora', 'usr_root']);
  assert.deepEqual(toldOf(eventOf('invoice.paid')), ['usr_root']);
});

test('does not take a member of the posted object for the tenant of the event', () => {
  const disguised = eventOf('invoice.paid', {
    owner: 'usr_bob',
    object: { tenant: 'north', tenantId: 'north' },
  });
  assert.deepEqual(toldOf(disguised), ['usr_bob', 'usr_root']);
});

test('tells nobody but administrators of a collection that is declared no more', () => {
  assert.deepEqual(toldOf({ ...eventOf('products.created', { owner: 'usr_ada' }), collection: 'past' }), [
    'usr_root',
  ]);
});

test('tells no more than the credential could read that made the endpoint', () => {
  for (const scopes of [['webhooks'], ['write', 'webhooks']] as const) {
    assert.deepEqual(toldOf(eventOf('products.created'), scopes), ['usr_root']);
    assert.deepEqual(toldOf(eventOf('notes.created', { owner: 'usr_ada' }), scopes), ['usr_root']);
  }
  // Posting and hearing of what was posted is what the scope `webhooks` is for.
  assert.deepEqual(toldOf(eventOf('invoice.paid', { owner: 'usr_ada' }), ['webhooks']), [
    'usr_ada',
    'usr_root',
  ]);
  assert.deepEqual(toldOf(eventOf('invoice.paid', { owner: 'usr_ada' }), ['write']), ['usr_root']);
});

test('names the tenant in the envelope, whose object still stands last', () => {
  const { id, doc } = eventOf('invoice.paid', { tenant: 'nor"th', object: { total: 5 } });
  assert.match(doc, /"data":\{"object":\{"total":5\}\}\}$/);
  const { created, ...rest } = JSON.parse(doc);
  assert.ok(Number.isInteger(created));
  assert.deepEqual(rest, {
    id,
    object: 'event',
    type: 'invoice.paid',
    tenant: 'nor"th',
    data: { object: { total: 5 } },
  });
  assert.ok(!('tenant' in JSON.parse(eventOf('invoice.paid').doc)));
});

test('limits an endpoint with a tenant to the events of that tenant', () => {
  const ofNorth = knownOf('usr_root', { tenant: 'north' });
  const told = (event: EventEntry): boolean => {
    const found = matcherOf([ofNorth]).matching(event).groups.flat().length > 0;
    assert.equal(wants(ofNorth, event), found);
    return found;
  };
  assert.equal(told(eventOf('offices.created', { object: { tenantId: 'north' } })), true);
  assert.equal(told(eventOf('offices.created', { object: { tenantId: 'south' } })), false);
  assert.equal(told(eventOf('offices.created', { object: {} })), false);
  assert.equal(
    told(eventOf('products.created', { object: { tenantId: 'north' } })),
    false,
    'no collection of tenants',
  );
  assert.equal(told(eventOf('invoice.paid', { tenant: 'north' })), true);
  assert.equal(told(eventOf('invoice.paid', { tenant: 'south' })), false);
  assert.equal(told(eventOf('invoice.paid')), false);
  const strange = knownOf('usr_sam', { tenant: 'north' });
  assert.equal(
    wants(strange, eventOf('offices.created', { object: { tenantId: 'north' } })),
    false,
    'not its own',
  );
});

test('sends nothing to an endpoint that is disabled, or whose owner is gone', () => {
  const event = eventOf('products.created');
  const all = [knownOf('usr_ada', { status: 'disabled' }), knownOf('usr_gone'), knownOf(null)];
  assert.deepEqual(matcherOf(all).matching(event).groups.flat(), []);
});

test('tells exactly what the stream of events would show the same principal', () => {
  const tenant = fc.constantFrom(undefined, 'north', 'south');
  const owner = fc.constantFrom(null, ...people);
  const event = fc
    .record({
      type: fc.constantFrom(
        'products.created',
        'notes.updated',
        'offices.deleted',
        'articles.created',
        'audits.x',
        'invoice.paid',
      ),
      owner,
      tenant,
      published: fc.boolean(),
      tenantId: tenant,
    })
    .map(({ type, owner: of, tenant: whose, ...object }) =>
      eventOf(type, { owner: of, object, ...(whose === undefined ? {} : { tenant: whose }) }),
    );
  const scopes = fc.subarray<Scope>(['read', 'write', 'webhooks']);
  const endpoint = fc
    .record({ owner: fc.constantFrom(...people, 'usr_gone'), tenant, scopes })
    .map(({ owner: of, tenant: whose, scopes: granted }) =>
      knownOf(of, whose === undefined ? {} : { tenant: whose }, granted),
    );
  fc.assert(
    fc.property(fc.array(endpoint, { maxLength: 12 }), fc.array(event, { maxLength: 12 }), (all, events) => {
      const matcher = matcherOf(all);
      for (const each of events) {
        const found = new Set(matcher.matching(each).groups.flat());
        for (const known of all) {
          assert.equal(found.has(known), wants(known, each));
          assert.equal(found.has(known), isShown(known, each), `${known.owner} ${each.type} ${each.doc}`);
        }
      }
    }),
    { numRuns: 200 },
  );
});

/** By the filter of the stream, and the tenant of the endpoint. */
function isShown({ principal, endpoint }: KnownEndpoint, event: EventEntry): boolean {
  if (principal === undefined) return false;
  const doc: unknown = JSON.parse(event.doc);
  const value = (field: Field): unknown => {
    if (field.column === 'collection' || field.column === 'owner') return event[field.column];
    return memberAt(doc, field.path);
  };
  if (!matches(visibleEvents(collections, principal), { value, search: null })) return false;
  if (endpoint.tenant === undefined) return true;
  const whose =
    event.collection === 'offices'
      ? ['data', 'object', 'tenantId']
      : event.collection === ''
        ? ['tenant']
        : [];
  return whose.length > 0 && memberAt(doc, whose) === endpoint.tenant;
}
