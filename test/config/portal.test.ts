/** `portal` of a configuration (§5.10): mistakes are told with what is right. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspectPortal } from '../../src/config/portal.ts';

const cases: readonly (readonly [portal: unknown, sentence: string])[] = [
  [[], 'portal must be an object, not a list'],
  [{ colour: '#000000' }, 'portal has no member "colour"; did you mean color?'],
  [{ name: ' ' }, 'portal.name must be a text of 1 to 100 characters'],
  [{ name: 'x'.repeat(101) }, 'portal.name must be a text of 1 to 100 characters'],
  [{ color: 'green' }, 'portal.color must be a colour such as "#0b5c8a", not "green"'],
  [{ color: '#0a5' }, 'portal.color must be a colour such as "#0b5c8a", not "#0a5"'],
  [
    { color: '#777777' },
    'portal.color #777777 has a contrast of 4.4:1 with white, and text needs 4.5:1; #757575 has it',
  ],
  [
    { color: '#ffee00' },
    'portal.color #ffee00 has a contrast of 1.2:1 with white, and text needs 4.5:1; #7f7700 has it',
  ],
  [{ frameAncestors: '*' }, 'portal.frameAncestors must be a list of origins, not a string'],
  [
    { frameAncestors: Array(33).fill('https://a.example') },
    'portal.frameAncestors may hold 32 origins at most',
  ],
  [
    { frameAncestors: ['https://a.example', '*'] },
    'portal.frameAncestors[1] must be an origin such as "https://app.shop.example", not "*"',
  ],
  [
    { frameAncestors: ["https://a.example; script-src 'unsafe-inline'"] },
    `portal.frameAncestors[0] must be an origin such as "https://app.shop.example", not "https://a.example; script-src 'unsafe-inline'"`,
  ],
  [
    { frameAncestors: ['https://A.example/shop'] },
    'portal.frameAncestors[0] must be an origin such as "https://app.shop.example", not "https://A.example/shop"; did you mean "https://a.example"?',
  ],
  [
    { frameAncestors: ['http://a.example'] },
    'portal.frameAncestors[0] "http://a.example" must be https: on the way, others could change a page that is not',
  ],
];

for (const [portal, sentence] of cases) {
  test(`says of the portal: ${sentence}`, () => {
    const mistakes: string[] = [];
    inspectPortal(portal, mistakes);
    assert.deepEqual(mistakes, [sentence]);
  });
}

test('takes a name, a colour that contrasts with white, and origins of pages', () => {
  const mistakes: string[] = [];
  const portal = {
    name: 'Acme',
    color: '#767676',
    frameAncestors: ['https://a.example:8443', 'http://localhost:3000'],
  };
  assert.deepEqual(inspectPortal(portal, mistakes), portal);
  assert.deepEqual(inspectPortal(undefined, mistakes), {
    name: undefined,
    color: undefined,
    frameAncestors: [],
  });
  assert.deepEqual(mistakes, []);
});
