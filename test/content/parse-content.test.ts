import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseMediaType } from '../../src/http/syntax/media-type.ts';
import {
  type ContentShape,
  contentLimitsDefault,
  contentShape,
  type Parsed,
} from '../../src/kernel/content/content-shape.ts';
import { parseContent, parsePatch } from '../../src/kernel/content/parse-content.ts';
import { notes, products } from '../document/sample-collections.ts';

const shape = contentShape(products);

function parse(
  content: string | Uint8Array,
  type: string,
  into: ContentShape | undefined = shape,
  limits = contentLimitsDefault,
): Parsed | Promise<Parsed> {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
  const mediaType = parseMediaType(type);
  assert.ok(mediaType);
  return parseContent(bytes, mediaType, into, limits);
}

async function codeOf(content: string | Uint8Array, type: string, into?: ContentShape): Promise<string> {
  const parsed = await parse(content, type, into);
  return parsed.ok ? 'parsed' : parsed.problem.code;
}

describe('JSON', () => {
  for (const [type, format] of [
    ['application/json', 'json'],
    ['Application/JSON; charset=UTF-8', 'json'],
    ['application/merge-patch+json', 'merge-patch'],
    ['application/json-patch+json', 'json-patch'],
  ] as const) {
    test(`is read at once from ${type}`, () => {
      assert.deepEqual(parse('{"a":[1,null,"é"]}', type), { ok: true, format, value: { a: [1, null, 'é'] } });
    });
  }

  const malformed = [
    '{',
    '{"a":1,}',
    '{"a":1}x',
    "{'a':1}",
    '{"a":1,"a":2}',
    '{"__proto__":{}}',
    '{"a":"\\ud800"}',
    '{"a":1e999}',
    '{"a":9007199254740993}',
    '\ufeff{}',
    ' ',
    'NaN',
  ];
  for (const text of malformed) {
    test(`refuses ${JSON.stringify(text)} as malformed and says where`, () => {
      const parsed = parse(text, 'application/json');
      assert.ok(!(parsed instanceof Promise) && !parsed.ok);
      assert.equal(parsed.problem.code, 'content_malformed');
      assert.match(parsed.problem.message ?? '', /^malformed JSON: /);
      assert.equal(typeof parsed.problem.context?.offset, 'number');
    });
  }

  test('is read to jsonDepthMax levels and no further', async () => {
    const limits = { ...contentLimitsDefault, jsonDepthMax: 3 };
    assert.equal((await parse('[[[]]]', 'application/json', shape, limits)).ok, true);
    assert.equal((await parse('[[[[]]]]', 'application/json', shape, limits)).ok, false);
  });

  test('is read to jsonMembersMax members and no further', async () => {
    const limits = { ...contentLimitsDefault, jsonMembersMax: 2 };
    assert.equal((await parse('{"a":1,"b":2}', 'application/json', shape, limits)).ok, true);
    assert.equal((await parse('{"a":1,"b":2,"c":3}', 'application/json', shape, limits)).ok, false);
  });

  test('nested a hundred thousand levels is refused without a crash', async () => {
    assert.equal(await codeOf('['.repeat(100_000), 'application/json'), 'content_malformed');
  });
});

describe('every format', () => {
  const types = ['application/json', 'application/x-www-form-urlencoded', 'text/plain', 'application/sql'];
  for (const type of types) {
    test(`${type} refuses octets that are not UTF-8`, async () => {
      const bytes = Uint8Array.of(0x22, 0xc3, 0x28, 0x22);
      assert.equal(await codeOf(bytes, type, contentShape(notes)), 'content_malformed');
    });

    test(`${type} refuses another charset and says what to send`, async () => {
      const parsed = await parse('{}', `${type}; charset=ISO-8859-1`, contentShape(notes));
      assert.equal(parsed.ok ? '' : parsed.problem.code, 'media_type_unsupported');
      const expected = 'unsupported charset "iso-8859-1"; send UTF-8';
      assert.equal(parsed.ok ? '' : parsed.problem.message, expected);
    });

    for (const charset of ['UTF-8', 'utf8', 'us-ascii']) {
      test(`${type} takes the charset ${charset}`, async () => {
        const code = await codeOf('x', `${type}; charset=${charset}`, contentShape(notes));
        assert.notEqual(code, 'media_type_unsupported');
      });
    }

    if (type === 'text/plain') continue;
    test(`${type} without content is content_missing`, async () => {
      assert.equal(await codeOf('', type, contentShape(notes)), 'content_missing');
    });
  }

  test('text/plain without content is an empty text', async () => {
    const parsed = await parse('', 'text/plain', contentShape(notes));
    assert.deepEqual(parsed, { ok: true, format: 'text', value: { text: '' } });
  });

  test('multipart without content is content_missing', async () => {
    assert.equal(await codeOf('', 'multipart/form-data; boundary=x'), 'content_missing');
  });

  for (const type of ['application/xml', 'application/vnd.api+json', 'text/json', 'constructor/prototype']) {
    test(`refuses ${type}`, async () => {
      assert.equal(await codeOf('{}', type), 'media_type_unsupported');
    });
  }

  test('a format that the collection does not take is refused', async () => {
    const jsonOnly = contentShape({ ...products, formats: new Set(['json'] as const) });
    assert.equal(
      await codeOf('name=x', 'application/x-www-form-urlencoded', jsonOnly),
      'media_type_unsupported',
    );
    assert.equal(
      await codeOf('--x--', 'multipart/form-data; boundary=x', jsonOnly),
      'media_type_unsupported',
    );
    assert.equal(await codeOf('x', 'text/plain', jsonOnly), 'media_type_unsupported');
  });
});

describe('text', () => {
  const into = contentShape(notes);

  test('becomes the text field of the collection', () => {
    const expected = { ok: true, format: 'text', value: { text: 'Hello\r\nworld é' } };
    assert.deepEqual(parse('Hello\r\nworld é', 'text/plain; charset=utf-8', into), expected);
  });

  test('loses a byte order mark', () => {
    assert.deepEqual(parse('\ufeffx', 'text/plain', into), {
      ok: true,
      format: 'text',
      value: { text: 'x' },
    });
  });

  test('is refused where the collection has no text field', async () => {
    assert.equal(await codeOf('x', 'text/plain'), 'media_type_unsupported');
  });
});

describe('a QUERY', () => {
  test('gets the pairs of a form in their order', () => {
    const expected = {
      ok: true,
      format: 'form',
      value: [
        ['a', '1'],
        ['a', ''],
        ['__proto__', 'x'],
      ],
    };
    const bytes = new TextEncoder().encode('a=1&a=&__proto__=x');
    const mediaType = parseMediaType('application/x-www-form-urlencoded');
    assert.ok(mediaType);
    assert.deepEqual(parseContent(bytes, mediaType, undefined, contentLimitsDefault), expected);
  });

  test('gets SQL as text', () => {
    const expected = { ok: true, format: 'sql', value: 'SELECT 1' };
    assert.deepEqual(parse('SELECT 1', 'application/sql'), expected);
  });
});

describe('a patch', () => {
  const patchOf = (text: string, type: string) => {
    const mediaType = parseMediaType(type);
    assert.ok(mediaType);
    return parsePatch(new TextEncoder().encode(text), mediaType, contentLimitsDefault);
  };

  test('carries its format with its value', () => {
    const expected = { ok: true, value: { format: 'json-patch', value: [] } };
    assert.deepEqual(patchOf('[]', 'application/json-patch+json'), expected);
  });

  test('is refused in the other formats', () => {
    for (const type of [
      'application/x-www-form-urlencoded',
      'text/plain',
      'application/sql',
      'multipart/form-data',
    ]) {
      const parsed = patchOf('a=1', type);
      assert.equal(parsed.ok ? '' : parsed.problem.code, 'media_type_unsupported');
    }
  });

  test('is refused when it is broken or empty', () => {
    assert.equal(
      (patchOf('[', 'application/json') as { problem: { code: string } }).problem.code,
      'content_malformed',
    );
    assert.equal(
      (patchOf('', 'application/json') as { problem: { code: string } }).problem.code,
      'content_missing',
    );
  });
});
