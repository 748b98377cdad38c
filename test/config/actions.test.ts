/** Mistakes in the declarations of actions: each told with its collection, action and member. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { action, output, upload } from 'comity';
import { Type } from 'typebox';
import { resolveConfiguration } from '../../src/config/configuration.ts';
import type { ConfigurationDeclaration } from '../../src/config/define.ts';
import { mistakesFrom } from '../harness/mistakes.ts';

const schema = Type.Object({ title: Type.String(), group: Type.Optional(Type.String()) });
const handler = () => undefined;

function mistakesOf(declaration: unknown): readonly string[] {
  return mistakesFrom(() => resolveConfiguration(declaration as ConfigurationDeclaration));
}

const holdsItself = { type: 'object', properties: {} as Record<string, unknown> };
holdsItself.properties.again = holdsItself;

const free = (actions: unknown): readonly string[] =>
  mistakesOf({ collections: { tickets: { schema } }, actions });
const own = (actions: unknown): readonly string[] =>
  mistakesOf({ collections: { tickets: { schema, actions } } });

function beyond(where: object): readonly string[] {
  const actions = { x: { on: 'member', method: 'POST', access: { where }, handler } };
  const references = { parentId: { collection: 'tickets' } };
  const nested = Type.Object({ ...schema.properties, parentId: Type.Optional(Type.String()) });
  return mistakesOf({ collections: { tickets: { schema: nested, references, actions } } });
}

for (const [title, mistakes, told] of [
  ['no object', free([]), /^actions must be an object, not a list$/],
  ['no action', free({ ping: 17 }), /^actions\.ping: must be what action\(\.\.\.\) returns, not a number$/],
  ['no method', free({ ping: { handler } }), /actions\.ping: method must be one of GET, .*, not undefined/],
  [
    'an input that holds itself',
    free({ ping: { method: 'POST', input: holdsItself, handler } }),
    /^actions\.ping: input\.properties\.a.* is nested deeper than 64 levels/,
  ],
  ['a bad method', free({ ping: { method: 'FETCH', handler } }), /method must be one of .*, not "FETCH"/],
  ['no handler', free({ ping: { method: 'GET', handler: 'x' } }), /handler must be a function, not a string/],
  [
    'an unknown member',
    free({ ping: { method: 'GET', handler, ouput: schema } }),
    /"ouput" is not a member of an action; did you mean output\?/,
  ],
  [
    'on without a collection',
    free({ ping: { method: 'GET', on: 'member', handler } }),
    /on is only for the actions of a coll/,
  ],
  [
    'a collection without on',
    own({ merge: { method: 'POST', handler } }),
    /^collection tickets: actions\.merge: on must be 'member' or 'collection'/,
  ],
  [
    'a bad path',
    free({ ping: { method: 'GET', path: 'ping', handler } }),
    /path must be a path such as \/merge/,
  ],
  [
    'a path into a collection',
    free({ ping: { method: 'GET', path: '/tickets/x', handler } }),
    /\/tickets, which is a collection/,
  ],
  [
    'a reserved path',
    free({ events: { method: 'GET', handler } }),
    /\/events, which is reserved for a built-in resource/,
  ],
  ['a capture first', free({ ping: { method: 'GET', path: '/{any}', handler } }), /begins with a capture/],
  [
    'a capture id',
    own({ x: { on: 'member', method: 'GET', path: '/x/{id}', handler } }),
    /a capture \{id\}, which is the member/,
  ],
  [
    'a path of the program',
    own({ 'bulk-delete': { on: 'collection', method: 'POST', handler } }),
    /program itself serves there/,
  ],
  [
    'two with one path',
    free({
      one: { method: 'GET', path: '/x/{a}', handler },
      two: { method: 'GET', path: '/x/{b}', handler },
    }),
    /actions\.two: has the method and the path of the action one: GET \/x\/\{b\}/,
  ],
  [
    'captures of other names',
    free({
      one: { method: 'GET', path: '/x/{a}', handler },
      two: { method: 'POST', path: '/x/{b}', handler },
    }),
    /names its captures differently from the action one: \/x\/\{a\}/,
  ],
  [
    'an input that is none',
    free({ ping: { method: 'POST', input: Type.String(), handler } }),
    /input must be a Type\.Object\(\{ \.\.\. \}\), not a schema of the type string/,
  ],
  [
    'an upload in a query string',
    free({ ping: { method: 'DELETE', input: Type.Object({ file: upload({ bytesMax: 1 }) }), handler } }),
    /actions\.ping: input\.file is an upload, which only POST, PUT and PATCH take/,
  ],
  [
    'an upload within an object',
    free({
      ping: {
        method: 'POST',
        input: Type.Object({ of: Type.Object({ file: upload({ bytesMax: 1 }) }) }),
        handler,
      },
    }),
    /input\.of\.file is an upload: it must be a member of the input/,
  ],
  [
    'a list of uploads without an end',
    free({
      ping: { method: 'POST', input: Type.Object({ files: Type.Array(upload({ bytesMax: 1 })) }), handler },
    }),
    /input\.files must have maxItems, a whole number from 1 to 1000/,
  ],
  [
    'an upload without a bound',
    free({ ping: { method: 'POST', input: Type.Object({ file: upload({} as never) }), handler } }),
    /input\.file: upload needs bytesMax, a whole number from 1 to 268435456, not undefined/,
  ],
  [
    'uploads that are too many octets',
    free({
      ping: {
        method: 'POST',
        input: Type.Object({ files: Type.Array(upload({ bytesMax: 2 ** 28 }), { maxItems: 2 }) }),
        handler,
      },
    }),
    /input takes uploads of 536870912 bytes together, and at most 268435456 are possible/,
  ],
  [
    'an upload of no type',
    free({
      ping: {
        method: 'POST',
        input: Type.Object({ file: upload({ bytesMax: 1, mediaTypes: ['png'] }) }),
        handler,
      },
    }),
    /mediaTypes of upload takes types such as image\/png or image\/\*, not "png"/,
  ],
  [
    'an upload in a collection',
    mistakesOf({ collections: { scans: { schema: Type.Object({ file: upload({ bytesMax: 1 }) }) } } }),
    /^collection scans: schema\.file is an upload, which only the input of an action takes; a collection declares File/,
  ],
  [
    'an input that no query string has',
    free({ ping: { method: 'GET', input: Type.Object({ all: Type.Array(schema) }), handler } }),
    /input\.all cannot come from a query string, in which a GET has its input/,
  ],
  [
    'a bad output',
    free({ ping: { method: 'GET', output: 'json', handler } }),
    /output must be a TypeBox schema or one of/,
  ],
  [
    'a bad media type',
    free({ ping: { method: 'GET', output: output.text('csv'), handler } }),
    /takes a media type such as/,
  ],
  [
    'a bad redirect',
    free({ ping: { method: 'GET', output: output.redirect(301 as never), handler } }),
    /takes 303, 307 or 308/,
  ],
  [
    'a reference to no collection',
    free({
      ping: {
        method: 'POST',
        input: Type.Object({ to: Type.String() }),
        references: { to: 'nothing' },
        handler,
      },
    }),
    /references\.to must be the name of a collection, not "nothing"/,
  ],
  [
    'a reference of no member',
    free({ ping: { method: 'POST', references: { to: 'users' }, handler } }),
    /references\.to is no text of the input/,
  ],
  ['a bad code', free({ ping: { method: 'GET', codes: ['Bad Code'], handler } }), /"Bad Code" is not a code/],
  [
    'a bad status',
    free({ ping: { method: 'GET', codes: { fine: 500 }, handler } }),
    /codes\.fine must be one of 400, /,
  ],
  [
    'the status of another',
    free({ ping: { method: 'GET', codes: { unique_taken: 400 }, handler } }),
    /has the status 409 in the registry/,
  ],
  [
    'a rule without a document',
    free({ ping: { method: 'GET', access: 'owner', handler } }),
    /access needs a document/,
  ],
  [
    'a rule that is none',
    own({ x: { on: 'member', method: 'POST', access: { rule: 'agent' }, handler } }),
    /access must be 'public'/,
  ],
  [
    'a rule of an unknown field',
    own({ x: { on: 'member', method: 'POST', access: { where: { x: 1 } }, handler } }),
    /"x", which is not a field/,
  ],
  [
    'a rule whose path ends at no field',
    beyond({ 'parentId.grup': 'x' }),
    /^collection tickets: actions\.x: access: where names "parentId\.grup", which is not a field of tickets; did you mean group\?$/,
  ],
  [
    'a rule that compares the end of a path with another type',
    beyond({ 'parentId.group': 1 }),
    /access: where compares "parentId\.group", a string, with a number$/,
  ],
  [
    'a path through a field that is no reference',
    beyond({ 'group.title': 'x' }),
    /access: where names "group\.title", but "group" is not a reference; declare it in references$/,
  ],
] as const) {
  test(`refuses ${title}`, () => {
    assert.equal(mistakes.length, 1, mistakes.join('\n'));
    assert.match(mistakes[0] ?? '', told);
  });
}

test('a text that is no rule is a role, and the default is the rule update of the collection', () => {
  const { actions } = resolveConfiguration({
    collections: {
      tickets: {
        schema,
        access: { update: 'owner' },
        actions: {
          merge: action({ on: 'member', method: 'POST', handler }),
          assign: action({ on: 'member', method: 'POST', access: 'agent', handler }),
          all: action({ on: 'collection', method: 'POST', handler }),
        },
      },
    },
    actions: { ping: action({ method: 'GET', access: 'public', handler }) },
  });
  assert.deepEqual(
    actions.map(({ pattern, rule }) => [pattern, rule]),
    [
      ['/tickets/{id}/merge', 'owner'],
      ['/tickets/{id}/assign', { role: 'agent' }],
      ['/tickets/all', 'principal'],
      ['/ping', 'public'],
    ],
  );
});
