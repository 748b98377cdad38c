/** Texts in long JSON: the same as those of the parsed value, for any octets. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type JsonTexts, jsonTexts } from '../../../src/webhooks/receive/json-texts.ts';
import { valueAt } from '../../../src/webhooks/receive/message-facts.ts';

const pointers = [
  '',
  '/id',
  '/a/b',
  '/a/0',
  '/0/id',
  '/1',
  '/a/b/id',
  '/a~1b/~0',
  '/',
  '/__proto__',
  '/length',
  'id',
];

/** What JSON.parse finds: strings and numbers, as values. */
function parsed(text: string): Record<string, unknown> | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const found = pointers.map((pointer) => [pointer, valueAt(value, pointer)] as const);
  return Object.fromEntries(found.filter(([, each]) => typeof each === 'string' || typeof each === 'number'));
}

function scanned(text: string): Record<string, unknown> | undefined {
  const found = inSteps(text).found;
  return found && Object.fromEntries(pointers.flatMap((pointer) => entryOf(pointer, found.get(pointer))));
}

function inSteps(text: string): { readonly found: JsonTexts; readonly steps: number } {
  const scan = jsonTexts(Buffer.from(text), pointers);
  for (let steps = 1; ; steps += 1) {
    const { done, value } = scan.next();
    if (done === true) return { found: value, steps };
  }
}

function entryOf(pointer: string, json: string | undefined): [string, unknown][] {
  return json === undefined ? [] : [[pointer, JSON.parse(json)]];
}

const cases = [
  ...['"x"', ' 12 ', 'null', '', ' ', '[]', '{}', '[ ]', '{ }', '[1,2]', '[[],{},[[]]]', '{"id":"é"}'],
  ...['{"id":1,"id":2}', '{"id":"x","id":{}}', '{"a":{"b":1},"a":2}', '{"a":{"b":1},"a":{"b":3}}'],
  ...['{"\\u0069d":"escaped"}', '{"a":{"b":{"id":-0}}}', '[{"id":1e3},"second"]', '{"a":["first"]}'],
  ...['{"a/b":{"~":"t"}}', '{"":"empty"}', '{"__proto__":"own"}', '{"length":1}', '["x"]'],
  ...[
    '{"id":01}',
    '{"id":1.}',
    '{"id":.5}',
    '{"id":-}',
    '{"id":1e}',
    '{"id":+1}',
    '{"id":1E+2}',
    '{"id":"\\x"}',
  ],
  ...[
    '{"id":"\\u12g4"}',
    '{"id":"a\nb"}',
    '{"id":"a"',
    '{"id":"a"}}',
    '{"id":"a",}',
    '[1,]',
    '[,1]',
    '{id:1}',
  ],
  ...[
    "{'id':1}",
    '{"id" 1}',
    '{"id":tru}',
    '{"id":nul}',
    'true false',
    '[}',
    '{]',
    '{"a":[1}',
    '\u00a01',
    '{"id":"a',
  ],
  ...[
    '{"other":{"b":1}}',
    '{"other":{"id":1},"id":7}',
    '[[{"id":1}]]',
    '\t{"id"\r\n:\t"x" }\n',
    '{"id":"\\ud800"}',
  ],
];

for (const text of cases)
  test(`finds in ${JSON.stringify(text)} what the parsed value has`, () =>
    assert.deepEqual(scanned(text), parsed(text)));

test('finds the same in thousands of texts that are nearly JSON', () => {
  let state = 7;
  const below = (bound: number): number => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state % bound;
  };
  const pieces = [
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"id"',
    '"a"',
    '"b"',
    '"id":"x"',
    '1',
    '-2.5e3',
    'null',
    ' ',
    '"a":{',
  ];
  const anyValue = (depth: number): unknown => {
    const kind = below(depth > 3 ? 3 : 6);
    if (kind === 0) return ['x', 'é\u{1f600}', '', '\u2028"\\'][below(4)];
    if (kind === 1) return [0, -1.5, 1e21, true, null][below(5)];
    if (kind < 4) return Array.from({ length: below(4) }, () => anyValue(depth + 1));
    const names = ['id', 'a', 'b', '', 'a/b', '~', 'length'];
    return Object.fromEntries(
      Array.from({ length: below(4) }, () => [names[below(names.length)] ?? '', anyValue(depth + 1)]),
    );
  };
  for (let round = 0; round < 20_000; round += 1) {
    let text = JSON.stringify(anyValue(0), null, below(3));
    if (round % 2 === 1) {
      const at = below(text.length + 1);
      text = `${text.slice(0, at)}${pieces[below(pieces.length)] ?? ''}${text.slice(at + below(3))}`;
    }
    if (text.isWellFormed()) assert.deepEqual(scanned(text), parsed(text), text);
  }
});

test('passes over a mark of the order of octets, and nesting of any depth', () => {
  assert.equal(scanned('\ufeff{"id":1}')?.['/id'], 1);
  const depth = 1_000_000;
  assert.deepEqual(scanned(`{"a":${'['.repeat(depth)}${']'.repeat(depth)},"id":"x"}`), { '/id': 'x' });
  assert.equal(scanned('['.repeat(depth)), undefined);
});

test('looks through long values, strings and names in steps', () => {
  const octets = 1024 * 1024;
  for (const [text, id] of [
    [`[${'{},'.repeat(octets / 3)}{}]`, undefined],
    [`{"a":"${'x'.repeat(octets)}","id":"behind"}`, 'behind'],
    [`{"${'\\n'.repeat(octets / 2)}":1,"id":"behind"}`, 'behind'],
    [`{"id":"${'y'.repeat(octets)}"}`, 'y'.repeat(octets)],
    [`{"id":"${'y'.repeat(octets)}`, undefined],
  ] as const) {
    const { found, steps } = inSteps(text);
    assert.ok(steps >= 8 && steps <= 12, `${steps} steps of ${text.slice(0, 20)}`);
    assert.equal(found?.get('/id'), id === undefined ? undefined : JSON.stringify(id));
  }
});
