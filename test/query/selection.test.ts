import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Field } from '../../src/model/field.ts';
import { projection, readSelection } from '../../src/resources/query/selection.ts';
import { field, fields, limits } from './shop.ts';

describe('the query component of one resource', () => {
  const names = (query: string) => {
    const selection = readSelection(query, { fields }, limits);
    return selection.ok ? selection.select?.map(({ name }) => name) : selection.message;
  };

  test('selects everything without fields', () => {
    assert.equal(names(''), undefined);
    assert.equal(names('api_key=sk_x'), undefined);
  });

  test('selects the named fields, in either spelling of a list', () => {
    assert.deepEqual(names('fields=price%2Cname'), ['name', 'price']);
    assert.deepEqual(names('fields=price&fields=name'), ['name', 'price']);
    assert.deepEqual(names('fields%5B%5D=price&fields[]=name'), ['name', 'price']);
  });

  const faults: readonly (readonly [query: string, message: RegExp])[] = [
    ['fields=prize', /^unknown field "prize"; fields: id/],
    ['fields=', /^fields has an empty field name$/],
    ['fields=price&fields=prize', /^unknown field "prize"; fields: id/],
    ['fields=price&fields=', /^fields has an empty field name$/],
    ['page=2', /^unknown parameter "page"; parameters: fields, expand, counts$/],
    ['fields=%', /^malformed query string$/],
  ];
  for (const [query, message] of faults) {
    test(`refuses ${query}`, () => assert.match(String(names(query)), message));
  }
});

describe('a projection', () => {
  const doc = '{"id":"1","name":"Lamp","price":null,"tags":["a"],"address":{"city":"Ulm","zip":"89073"}}';
  const of = (...names: readonly string[]) => projection(names.map(field))(doc);

  test('keeps the selected members, in the order of the selection', () => {
    assert.equal(of('id', 'price', 'tags'), '{"id":"1","price":null,"tags":["a"]}');
  });
  test('leaves out what is absent', () => assert.equal(of('name', 'stock'), '{"name":"Lamp"}'));
  test('keeps the object around a nested member', () => {
    assert.equal(of('address.city'), '{"address":{"city":"Ulm"}}');
  });
  test('takes a parent as a whole, whatever of it is named besides', () => {
    const whole = '{"address":{"city":"Ulm","zip":"89073"}}';
    assert.equal(of('address', 'address.city'), whole);
    assert.equal(of('address.city', 'address'), whole);
  });
  test('joins nested members of one parent', () => {
    const zip: Field = { name: 'address.zip', path: ['address', 'zip'], type: 'string' };
    assert.equal(projection([field('address.city'), zip])(doc), '{"address":{"city":"Ulm","zip":"89073"}}');
  });
  test('treats __proto__ and inherited names as plain names', () => {
    const named = (name: string): Field => ({ name, path: [name], type: 'json' });
    assert.equal(projection([named('__proto__')])('{"__proto__":{"a":1}}'), '{"__proto__":{"a":1}}');
    assert.equal(projection([named('toString'), named('constructor')])('{}'), '{}');
  });
});
