/** Declarations of collections (§2, §4): the defaults they get, and the sentence for every mistake. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import { countName, resolveCollections } from '../../src/config/collections.ts';
import type { Collection, CollectionDeclaration } from '../../src/model/collection.ts';
import { searchLanguages } from '../../src/model/search/words.ts';
import type { Table } from '../../src/store/store.ts';
import { tableOf } from '../../src/store-tables.ts';
import { mistakesFrom } from '../harness/mistakes.ts';

const schema = Type.Object({
  name: Type.String(),
  price: Type.Optional(Type.Number({ minimum: 0 })),
  tags: Type.Optional(Type.Array(Type.String())),
  ownerId: Type.Optional(Type.String()),
  live: Type.Optional(Type.Boolean()),
  address: Type.Optional(Type.Object({ city: Type.String() })),
});

/** A declaration as plain JavaScript could have it. */
type Loose = { readonly [N in keyof CollectionDeclaration]?: unknown } & Readonly<Record<string, unknown>>;

function mistakesOf(declarations: Readonly<Record<string, Loose | undefined>>): readonly string[] {
  return mistakesFrom(() => resolveCollections(declarations as never));
}

function resolved(declaration: Omit<CollectionDeclaration, 'schema'> = {}): Collection {
  const collection = resolveCollections({ things: { schema, ...declaration } }).get('things');
  assert.ok(collection);
  return collection;
}

test('fills in the defaults', () => {
  const things = resolved();
  assert.deepEqual(things.access, {
    read: 'principal',
    create: 'principal',
    update: 'principal',
    delete: 'principal',
  });
  assert.equal(things.conceal, true);
  assert.equal(things.putCreates, false);
  assert.equal(things.softDelete, false);
  assert.equal(things.requireMatch, false);
  assert.deepEqual([...things.formats], ['json', 'form', 'multipart']);
  assert.equal(things.textField, undefined);
  assert.deepEqual([...things.required], ['name']);
  assert.deepEqual(things.indexes, []);
  assert.equal(things.cacheControl, 'private, no-cache');
});

test('keeps the given rules and fills in the others', () => {
  assert.deepEqual(resolved({ access: { read: 'public', delete: 'owner' } }).access, {
    read: 'public',
    create: 'principal',
    update: 'principal',
    delete: 'owner',
  });
});

test('lets shared caches keep what anyone may read, and nothing else', () => {
  assert.equal(resolved({ access: { read: 'public' } }).cacheControl, 'no-cache');
  assert.equal(resolved({ access: { read: { anyOf: ['owner', 'public'] } } }).cacheControl, 'no-cache');
  const some = { anyOf: [{ where: { live: true } }, 'owner' as const] };
  assert.equal(resolved({ access: { read: some } }).cacheControl, 'private, no-cache');
  assert.equal(
    resolved({ access: { read: 'public' }, cacheControl: 'max-age=60' }).cacheControl,
    'max-age=60',
  );
});

test('searches every string at the top level but references, unless told otherwise', () => {
  const references = { ownerId: { collection: 'things' } };
  assert.deepEqual(resolved({ references }).searchFields, ['name']);
  assert.deepEqual(resolved().searchFields, ['name', 'ownerId']);
  assert.deepEqual(resolved({ search: ['tags'] }).searchFields, ['tags']);
  assert.deepEqual(resolved({ search: [] }).searchFields, []);
  assert.equal(resolved().searchIndex, undefined);
  assert.deepEqual(resolved({ search: ['tags'] }).searchIndex?.fields, ['tags']);
  const { searchFields, searchIndex } = resolved({ search: { fields: ['name'], language: 'german' } });
  assert.deepEqual([searchFields, searchIndex?.language], [['name'], 'german']);
});

test('resolves indexes to fields, single and several', () => {
  const { indexes } = resolved({ indexes: ['price', ['live', 'createdAt'], 'address.city'] });
  assert.deepEqual(
    indexes.map((index) => index.map(({ name }) => name)),
    [['price'], ['live', 'createdAt'], ['address.city']],
  );
});

test('tells each collection who depends on it, and under which name they are counted', () => {
  const collections = resolveCollections({
    makers: { schema },
    'order-lines': { schema, references: { ownerId: { collection: 'makers' } } },
    things: { schema, references: { ownerId: { collection: 'makers', countAs: 'goods' } } },
  });
  assert.deepEqual(collections.get('makers')?.dependants, [
    {
      field: 'ownerId',
      collection: 'makers',
      countAs: 'orderLineCount',
      onDelete: 'restrict',
      from: 'order-lines',
    },
    { field: 'ownerId', collection: 'makers', countAs: 'goods', onDelete: 'restrict', from: 'things' },
  ]);
  assert.deepEqual(collections.get('things')?.dependants, []);
});

for (const [plural, count] of [
  ['products', 'productCount'],
  ['categories', 'categoryCount'],
  ['boxes', 'boxCount'],
  ['addresses', 'addressCount'],
  ['branches', 'branchCount'],
  ['order-lines', 'orderLineCount'],
  ['orderLines', 'orderLineCount'],
  ['news-items', 'newsItemCount'],
  ['status', 'statusCount'],
  ['staff', 'staffCount'],
] as const) {
  test(`counts ${plural} as ${count}`, () => assert.equal(countName(plural), count));
}

test('gives storage a table with the fields, indexes, unique fields and references', () => {
  const table: Table = tableOf(
    resolved({ indexes: ['price'], unique: ['name'], references: { ownerId: { collection: 'things' } } }),
  );
  assert.equal(table.name, 'things');
  assert.deepEqual(
    table.fields.map(({ name }) => name),
    ['id', 'name', 'price', 'tags', 'ownerId', 'live', 'address', 'address.city', 'createdAt', 'updatedAt'],
  );
  assert.deepEqual(
    table.unique.flat().map(({ name }) => name),
    ['name'],
  );
  assert.deepEqual(
    table.references.map(({ field, table: to }) => [field.name, to]),
    [['ownerId', 'things']],
  );
  assert.equal(table.searched, true);
  assert.equal(tableOf(resolved({ search: [] })).searched, false);
});

for (const name of [
  'auth',
  'users',
  'keys',
  'events',
  'queries',
  'operations',
  'health',
  'openapi',
  'dashboard',
  'Events',
]) {
  test(`refuses a collection called ${name}`, () => {
    assert.equal(mistakesOf({ [name]: { schema } }).length, 1);
  });
}

for (const name of ['', 'Things', '1st', 'a_b', 'a.b', 'a--b', 'a-', '-a', 'ä', 'a b', 'a'.repeat(64)]) {
  test(`refuses ${JSON.stringify(name)} as the name of a collection`, () => {
    const [mistake = '', ...others] = mistakesOf({ [name]: { schema } });
    assert.match(mistake, /the name must start with a lower-case letter/);
    assert.deepEqual(others, []);
  });
}

test('takes names in kebab case and camel case up to 63 characters', () => {
  for (const name of ['a', 'order-lines', 'orderLines', 'v2-things', 'a'.repeat(63)]) {
    assert.deepEqual(mistakesOf({ [name]: { schema } }), [], name);
  }
});

test('refuses two names that differ in case alone', () => {
  assert.deepEqual(mistakesOf({ orderLines: { schema }, orderlines: { schema } }), [
    'collection orderlines: the name differs from orderLines only in case',
  ]);
});

const where = { where: { live: true } };

const anyRule =
  "access.read must be 'public', 'principal', 'owner', 'tenant', 'administrator', what allow(...) returns, or one of { role }, { scope }, { anyOf }, { allOf } and { where }";

/** What is wrong with one property of `things`, and the predicate that says so. */
const refused: readonly (readonly [declaration: Loose, predicate: string])[] = [
  [{ schema: Type.String() }, 'schema must be a Type.Object({ ... })'],
  [{ schema: undefined }, 'schema must be a Type.Object({ ... })'],
  [{ schema: Type.Object({}) }, 'schema has no properties'],
  [
    { schema: Type.Object({ id: Type.String() }) },
    'schema declares "id", which the server sets; leave it out',
  ],
  [
    { schema: Type.Object({ deletedAt: Type.String() }) },
    'schema declares "deletedAt", which the server sets; leave it out',
  ],
  [
    { schema: Type.Object({ 'a.b': Type.String() }) },
    'schema declares "a.b"; a name holds letters, digits, _ and -, at most 63, and starts with a letter, which @ or $ may precede',
  ],
  [
    { schema: Type.Object({ 'a.b': Type.String(), a: Type.Object({ b: Type.String() }) }) },
    'schema declares "a.b" beside a nested member of this name',
  ],
  [
    { schema: Type.Object({ $etag: Type.String() }) },
    'schema declares "$etag", which Comity names a field of its own',
  ],
  [
    { schema: Type.Object({ $owner: Type.String() }) },
    'schema declares "$owner", which Comity names a field of its own',
  ],
  [
    { schema: Type.Object({ constructor: Type.Optional(Type.String()) }) },
    'schema declares "constructor", a name that every JavaScript object has',
  ],
  [{ uniqe: ['name'] }, '"uniqe" is not a property of a collection; did you mean unique?'],
  [{ indexes: ['prize'] }, 'indexes names "prize", which is not a field; did you mean price?'],
  [{ indexes: 'price' }, 'indexes must be a list, not a string'],
  [{ indexes: [7] }, 'indexes must hold names of fields, not a number'],
  [{ indexes: [[]] }, 'indexes holds an empty list'],
  [{ indexes: [['name', 'name']] }, 'indexes holds an index that names a field twice'],
  [{ indexes: ['tags'] }, 'indexes names "tags"; an index takes single values, not lists'],
  [{ indexes: ['address'] }, 'indexes names "address"; an index takes single values, not objects'],
  [{ unique: ['sku'] }, 'unique names "sku", which is not a field'],
  [{ unique: ['tags'] }, 'unique names "tags"; only single values can be unique, not lists'],
  [{ unique: ['id'] }, 'unique names "id", which the server sets'],
  [{ unique: [['name', 'tags']] }, 'unique names "tags"; only single values can be unique, not lists'],
  [{ unique: [['name', 'name']] }, 'unique holds a list that names a field twice'],
  [{ unique: [[]] }, 'unique holds an empty list'],
  [
    { unique: [{ fields: ['name'], ignorecase: true }] },
    'unique has an unknown member "ignorecase"; did you mean ignoreCase?',
  ],
  [
    { unique: [{ fields: ['price'], ignoreCase: true }] },
    'unique ignores the case of "price", which is not a string',
  ],
  [
    { unique: [{ fields: ['name'], ignoreCase: 'yes' }] },
    'unique.ignoreCase must be true or false, not a string',
  ],
  [{ unpatchable: ['nme'] }, 'unpatchable names "nme", which is not a field; did you mean name?'],
  [{ unpatchable: ['id'] }, 'unpatchable names "id", which clients cannot change anyway; leave it out'],
  [
    { unpatchable: ['address.city'] },
    'unpatchable names "address.city"; only a field at the top level can be fixed',
  ],
  [{ references: ['ownerId'] }, 'references must be an object, not a list'],
  [{ references: { ownerId: 'things' } }, "references.ownerId must be { collection: 'name' }"],
  [
    { references: { ownerId: { collection: 'thing' } } },
    'references.ownerId refers to "thing", which is not a collection; did you mean things?',
  ],
  [
    { references: { price: { collection: 'things' } } },
    'references names "price"; a reference is a string at the top level that holds an id',
  ],
  [
    { references: { ownerId: { collection: 'things', countAs: 'Bad Name' } } },
    'references.ownerId.countAs must be a camelCase name such as productCount',
  ],
  [
    { references: { ownerId: { collection: 'things', countAs: 'code' } } },
    'references.ownerId.countAs is "code", which every error body has already',
  ],
  [
    { references: { ownerId: { collection: 'things', onDelete: 'cascad' } } },
    'references.ownerId.onDelete must be restrict, cascade or setNull, not "cascad"; did you mean cascade?',
  ],
  [
    {
      schema: Type.Object({ ownerId: Type.String() }),
      references: { ownerId: { collection: 'things', onDelete: 'setNull' } },
    },
    'references.ownerId.onDelete is setNull, but the schema requires "ownerId"; make it optional, or use cascade',
  ],
  [
    { unpatchable: ['ownerId'], references: { ownerId: { collection: 'things', onDelete: 'setNull' } } },
    'references.ownerId.onDelete is setNull, but "ownerId" cannot be changed after creation',
  ],
  [
    {
      schema: Type.Object({ included: Type.String(), ownerId: Type.String() }),
      references: { ownerId: { collection: 'things' } },
    },
    'schema declares "included", where responses with expand have what the references lead to; rename the field',
  ],
  [
    { search: ['price'] },
    'search names "price"; only strings and lists of strings at the top level are searched',
  ],
  [{ search: ['titel'] }, 'search names "titel", which is not a field'],
  [{ search: { fields: ['titel'] } as never }, 'search names "titel", which is not a field'],
  [{ search: { language: 'english' } as never }, "search must name its fields: { fields: ['title'] }"],
  [
    { search: { fields: ['name'], languages: 'english' } as never },
    'search has an unknown member "languages"; did you mean language?',
  ],
  [
    { search: { fields: ['name'], language: 'germen' } as never },
    `search.language is "germen", which is not one of ${searchLanguages.join(', ')}; did you mean german?`,
  ],
  [{ formats: ['json', 'xml'] }, 'formats holds "xml"; the formats are json, form, multipart and text'],
  [{ formats: [] }, 'formats must name at least one body format'],
  [
    { formats: ['json', 'text'] },
    'formats holds "text", which needs textField to say which field the text becomes',
  ],
  [{ textField: 'name' }, 'textField is "name", which needs "text" among the formats'],
  [
    { formats: ['text'], textField: 'note', schema: Type.Object({ name: Type.Optional(Type.String()) }) },
    'textField names "note", which is not a field',
  ],
  [
    { formats: ['text'], textField: 'price', schema: Type.Object({ price: Type.Number() }) },
    'textField names "price", which is not a string that clients write',
  ],
  [
    { formats: ['text'], textField: 'ownerId' },
    'a text body sets only "ownerId", and "name" is required too: make it optional or leave text out of formats',
  ],
  [{ conceal: 'yes' }, 'conceal must be true or false, not a string'],
  [{ description: 5 }, 'description must be a string, not a number'],
  [
    { cacheControl: 'a\r\nSet-Cookie: b' },
    'cacheControl must be a value of Cache-Control, such as "max-age=60"',
  ],
  [{ access: 'public' }, 'access must be an object, not a string'],
  [{ access: { write: 'public' } }, 'access has no action "write"'],
  [{ access: { read: 'everyone' } }, anyRule],
  [{ access: { read: { anyOf: ['owner'], where: { live: true } } } }, anyRule],
  [{ access: { read: { anyOf: [] } } }, 'access.read: anyOf must be a list of at least one rule'],
  [
    { access: { create: where } },
    'access.create cannot have a where rule, because no resource exists yet; use a function, which sees the proposed resource',
  ],
  [
    { access: { create: { anyOf: ['administrator', where] } } },
    'access.create cannot have a where rule, because no resource exists yet; use a function, which sees the proposed resource',
  ],
  [
    { access: { create: 'owner' } },
    "access.create cannot be 'owner': a resource that is being created has no owner yet; use 'principal'",
  ],
  [{ access: { read: { where: {} } } }, 'access.read: where must name at least one field and its value'],
  [
    { access: { read: { where: { lve: true } } } },
    'access.read: where names "lve", which is not a field; did you mean live?',
  ],
  [
    { access: { read: { where: { live: 'yes' } } } },
    'access.read: where compares "live", a boolean, with a string',
  ],
  [
    { access: { read: { where: { tags: 'a' } } } },
    'access.read: where can compare only single values at the top level, which "tags" is not',
  ],
  [{ deprecation: true }, 'deprecation must be an object, not a boolean'],
  [{ deprecation: {} }, 'deprecation.since must be an ISO 8601 UTC time such as 2027-01-31T00:00:00Z'],
  [
    { deprecation: { since: '2027-02-31x' } },
    'deprecation.since must be an ISO 8601 UTC time such as 2027-01-31T00:00:00Z',
  ],
  [
    { deprecation: { since: '2027-02-01', sunset: '2027-01-01' } },
    'deprecation.sunset must not be before deprecation.since',
  ],
  [
    { deprecation: { since: '2027-02-01', link: 'see <here>' } },
    'deprecation.link must be an http or https URL, or a path',
  ],
  [{ examples: [{}] }, 'examples[0]/name is not valid: is required'],
  [
    { examples: [{ name: 'a' }, { name: 'a', price: -1 }] },
    'examples[1]/price is not valid: must be at least 0',
  ],
  [{ examples: [{ name: 'a', colour: 'red' }] }, 'examples[0] has the member "colour", which is not a field'],
  [{ examples: ['a'] }, 'examples[0] must be an object, not a string'],
];
const ofParent = (path: string, value: unknown): Loose => ({
  references: { ownerId: { collection: 'others' } },
  access: { read: { where: { [path]: value } } },
});

const others = {
  schema: Type.Object({ name: Type.String(), thingId: Type.String(), tags: Type.Array(Type.String()) }),
  references: { thingId: { collection: 'things' } },
};

/** What is wrong with a path of a rule of `things`, whose `ownerId` names one of `others`, which name a thing each. */
const refusedPaths: readonly (readonly [declaration: Loose, predicate: string])[] = [
  [
    ofParent('ownerId.nme', 'a'),
    'access.read: where names "ownerId.nme", which is not a field of others; did you mean name?',
  ],
  [
    ofParent('ownerId.thingId.prce', 1),
    'access.read: where names "ownerId.thingId.prce", which is not a field of things; did you mean price?',
  ],
  [
    ofParent('name.x', 'a'),
    'access.read: where names "name.x", but "name" is not a reference; declare it in references',
  ],
  [
    ofParent('ownerId.name.x', 'a'),
    'access.read: where names "ownerId.name.x", but "name" is not a reference of others; declare it in references',
  ],
  [
    ofParent('ownerId.thingId.price', 'a'),
    'access.read: where compares "ownerId.thingId.price", a number, with a string',
  ],
  [
    ofParent('ownerId.tags', 'a'),
    'access.read: where can compare only single values, which "ownerId.tags" is not',
  ],
  [
    ofParent('ownerId.thingId.ownerId.thingId.name', 'a'),
    'access.read: where names "ownerId.thingId.ownerId.thingId.name", which leads through 4 references; 3 are allowed',
  ],
  [
    {
      references: { ownerId: { collection: 'others' } },
      hidden: { price: { where: { 'ownerId.name': 'a' } } },
    },
    'hidden.price: where looks at a resource that a reference names; the rule of a single field can look only at the resource itself',
  ],
  [
    {
      references: { ownerId: { collection: 'others' } },
      readOnly: {
        price: {
          allow: (_principal: unknown, thing: { ownerId: { name: { is(value: string): unknown } } }) =>
            thing.ownerId.name.is('a'),
        },
      },
    },
    'readOnly.price: the function looks at a resource that a reference names; the rule of a single field can look only at the resource itself',
  ],
];
for (const [declaration, predicate] of refusedPaths) {
  test(`says: ${predicate}`, () => {
    assert.deepEqual(mistakesOf({ things: { schema, ...declaration }, others }), [
      `collection things: ${predicate}`,
    ]);
  });
}

test('takes paths of rules over three references, also around a circle, and to ids and null', () => {
  for (const [path, value] of [
    ['ownerId.name', 'a'],
    ['ownerId.thingId.ownerId.name', 'a'],
    ['ownerId.thingId.address.city', 'Rome'],
    ['ownerId.thingId.ownerId', null],
    ['ownerId.id', 'a'],
  ] as const)
    assert.deepEqual(mistakesOf({ things: { schema, ...ofParent(path, value) }, others }), [], path);
});

for (const [declaration, predicate] of refused) {
  test(`says: ${predicate}`, () => {
    assert.deepEqual(mistakesOf({ things: { schema, ...declaration } }), [`collection things: ${predicate}`]);
  });
}

test('refuses a reference that leads nowhere, and takes pointers and those to $id and $anchor', () => {
  const withReference = ($ref: string) => ({
    type: 'object',
    properties: { a: { $ref }, b: { $id: 'b', type: 'string' }, c: { $anchor: 'c', type: 'string' } },
    $defs: { 'd/e': { type: 'string' } },
    definitions: { 'x%y': { type: 'object', properties: { z: { type: 'string' } } } },
  });
  for (const reference of [
    ...['#', '#/$defs/d~1e', 'b', '#c', '#/$defs/d%7E1e', '#/properties/b', '#/definitions/x%25y'],
    '#/definitions/x%25y/properties/z',
  ]) {
    assert.deepEqual(mistakesOf({ things: { schema: withReference(reference) } }), []);
  }
  for (const reference of ['#/$defs/f', '#/properties/b/type', 'https://schemas.example/a', '']) {
    assert.deepEqual(mistakesOf({ things: { schema: withReference(reference) } }), [
      `collection things: schema refers to "${reference}", which it does not declare; $ref takes #, a pointer such as #/$defs/NAME, or the $id or $anchor of a schema within it`,
    ]);
  }
});

test('takes an example with a member that only a part of the schema declares', () => {
  const composed = {
    type: 'object',
    properties: { kind: { type: 'string' } },
    dependentSchemas: { kind: { properties: { size: { type: 'number' } } } },
  };
  assert.deepEqual(mistakesOf({ things: { schema: composed, examples: [{ kind: 'x', size: 1 }] } }), []);
  assert.deepEqual(mistakesOf({ things: { schema: composed, examples: [{ size: 1 }] } }), [
    'collection things: examples[0] has the member "size", which is not a field',
  ]);
});

test('reports the mistakes of all collections at once', () => {
  const mistakes = mistakesOf({
    things: { schema, indexes: ['a'], unique: ['b'], search: ['c'] },
    auth: { schema },
    others: undefined,
  });
  assert.equal(mistakes.length, 5);
});

test('takes every kind of rule where it can be decided', () => {
  const read = {
    anyOf: [{ allOf: ['principal', { where: { live: true, price: 1, ownerId: null } }] }, 'administrator'],
  };
  assert.deepEqual(
    mistakesOf({ things: { schema, access: { read, create: 'public', update: where, delete: 'owner' } } }),
    [],
  );
});

test('bounds how deep rules are nested', () => {
  let rule: unknown = 'public';
  for (let depth = 0; depth < 1000; depth += 1) rule = { anyOf: [rule] };
  assert.deepEqual(mistakesOf({ things: { schema, access: { read: rule } } }), [
    'collection things: access.read is nested more than 8 deep',
  ]);
});

test('refuses a schema that holds itself by its place, as one that is too deep', () => {
  const holdsItself = { type: 'object', properties: {} as Record<string, unknown> };
  holdsItself.properties.parent = holdsItself;
  let deep: unknown = { type: 'string' };
  for (let depth = 0; depth < 6000; depth += 1) deep = { anyOf: [deep] };
  const name = { schema: deep, compute: () => '' };
  for (const declaration of [
    { schema: holdsItself },
    { schema: Type.Object({ name: deep as never }) },
    { schema: Type.Object({}), computed: { name } },
  ]) {
    const [mistake = '', ...others] = mistakesOf({ things: declaration, others: { schema } });
    assert.match(
      mistake,
      /^collection things: schema\.properties.* is nested deeper than 64 levels of schemas$/,
    );
    assert.deepEqual(others, []);
  }
});

test('warns about a field that shares its name with a query parameter or a connective', () => {
  const warnings: string[] = [];
  const named = Type.Object({ order: Type.Integer(), not: Type.String(), name: Type.String() });
  resolveCollections({ things: { schema: named } }, (sentence) => warnings.push(sentence));
  assert.deepEqual(warnings, [
    'collection things: "order" is a query parameter too; filter on the field as order[eq]=',
    'collection things: "not" is a connective of JSON filters, which cannot name the field',
  ]);
});

test('takes a deprecation with a later sunset and a link', () => {
  const deprecation = {
    since: '2027-01-01T00:00:00Z',
    sunset: '2027-06-01',
    link: 'https://example.com/changes',
  };
  assert.deepEqual(resolved({ deprecation }).deprecation, deprecation);
});

test('takes further members of an example where the schema is open', () => {
  const open = Type.Object({ name: Type.String() }, { additionalProperties: Type.String() });
  assert.deepEqual(mistakesOf({ things: { schema: open, examples: [{ name: 'a', colour: 'red' }] } }), []);
});

test('gives each text of an index its even share of 2000 bytes, the least of all its indexes', () => {
  const bounds = (declaration: Omit<CollectionDeclaration, 'schema'>) =>
    Object.fromEntries(
      resolved(declaration).textBounds.map(({ path, bytesMax }) => [path.join('.'), bytesMax]),
    );
  assert.deepEqual(bounds({}), {});
  assert.deepEqual(bounds({ indexes: ['name', 'price', 'createdAt', 'live'] }), { name: 2000 });
  assert.deepEqual(bounds({ unique: ['name'], references: { ownerId: { collection: 'things' } } }), {
    name: 2000,
    ownerId: 2000,
  });
  assert.deepEqual(bounds({ indexes: [['name', 'price', 'id', 'address.city']], unique: ['name'] }), {
    name: 1000,
    'address.city': 1000,
  });
  assert.deepEqual(bounds({ indexes: ['name', ['ownerId', 'address.city', 'name']] }), {
    name: 666,
    ownerId: 666,
    'address.city': 666,
  });
});
