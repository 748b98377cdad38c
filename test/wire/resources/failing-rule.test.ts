/** An access function that fails for some caller, past what the start could try (§5.1): 500 at every door, and nothing is granted. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Type } from 'typebox';
import { resolveConfiguration } from '../../../src/config/configuration.ts';
import { allow } from '../../../src/model/access-function.ts';
import { authenticated } from '../../../src/model/principal.ts';
import { knownAs } from '../../resources/known.ts';
import { openShop, type Shop } from './shop-of-many.ts';

const trapped = allow((principal) => {
  if (principal.roles.has('trap')) throw new Error('the rule cannot think');
  return true;
});

let house: Shop;
let path: string;

before(async () => {
  house = await openShop({
    configuration: resolveConfiguration({
      collections: {
        things: {
          schema: Type.Object({ name: Type.String(), note: Type.Optional(Type.String()) }),
          access: { read: trapped, create: trapped, update: trapped, delete: trapped },
        },
        notes: {
          schema: Type.Object({ name: Type.String(), note: Type.Optional(Type.String()) }),
          hidden: { note: trapped },
          readOnly: { name: trapped },
        },
      },
    }),
    identify: (authorization) => {
      const id = String(authorization).replace('Bearer ', '');
      return knownAs(authenticated({ id, scopes: ['read', 'write'], roles: [id] }));
    },
  });
  const made = await house.as('ada', 'POST', '/api/v1/things', { json: { name: 'x' } });
  assert.equal(made.status, 201);
  path = `/api/v1/things/${made.json().id}`;
  assert.equal(
    (await house.as('ada', 'POST', '/api/v1/notes', { json: { name: 'x', note: 'y' } })).status,
    201,
  );
});

after(() => house.stop());

test('every door stays shut while the function fails, and opens for everyone else', async () => {
  const json = { name: 'y' };
  const doors: readonly (readonly [method: string, path: string, options?: object])[] = [
    ['GET', path],
    ['GET', '/api/v1/things'],
    ['QUERY', '/api/v1/things', { json: {} }],
    ['POST', '/api/v1/things', { json }],
    ['PUT', path, { json }],
    ['PATCH', path, { json }],
    ['DELETE', path],
    ['POST', '/api/v1/things/bulk-delete', { json: { ids: [path.split('/').at(-1)] } }],
    ['GET', '/api/v1/events'],
    ['GET', '/api/v1/notes'],
    ['POST', '/api/v1/notes', { json }],
  ];
  for (const [method, target, options] of doors) {
    const { status, body } = await house.as('trap', method, target, options);
    assert.equal(status, 500, `${method} ${target}: ${body}`);
    assert.equal(body.includes('think'), false, 'what went wrong is for the log');
  }
  const thing = await house.as('ada', 'GET', path);
  assert.equal(thing.json().name, 'x', 'nothing was done');
  assert.equal((await house.as('ada', 'GET', '/api/v1/events')).status, 200);
});
