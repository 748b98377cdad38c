import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseMediaType } from '../../src/http/syntax/media-type.ts';
import { contentLimitsDefault, contentShape, type Parsed } from '../../src/kernel/content/content-shape.ts';
import { parseContent } from '../../src/kernel/content/parse-content.ts';
import { profiles } from '../document/sample-collections.ts';

const shape = contentShape(profiles);
const field = (name: string, value: string) =>
  `--B\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;

async function read(
  content: string | Uint8Array,
  type = 'multipart/form-data; boundary=B',
  limits = contentLimitsDefault,
): Promise<Parsed> {
  const mediaType = parseMediaType(type);
  assert.ok(mediaType);
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  return parseContent(bytes, mediaType, shape, limits);
}

async function outcomeOf(content: string | Uint8Array, type?: string): Promise<unknown> {
  const parsed = await read(content, type);
  return parsed.ok ? parsed.value : parsed.problem;
}

async function codeOf(
  content: string | Uint8Array,
  type?: string,
  limits = contentLimitsDefault,
): Promise<string> {
  const parsed = await read(content, type, limits);
  return parsed.ok ? 'parsed' : parsed.problem.code;
}

describe('a multipart form', () => {
  test('is typed as an urlencoded one is', async () => {
    const content = `${field('name', 'é')}${field('age', '42')}${field('flags', 'true')}${field('address[city]', '')}--B--\r\n`;
    const expected = { name: 'é', age: 42, flags: [true], address: { city: '' } };
    assert.deepEqual(await read(content), { ok: true, format: 'multipart', value: expected });
  });

  test('is read as fetch and FormData write it', async () => {
    const form = new FormData();
    form.append('name', 'a "quoted"\nname');
    form.append('scores', '1');
    form.append('scores', '2');
    const response = new Response(form);
    const bytes = new Uint8Array(await response.arrayBuffer());
    const type = response.headers.get('content-type') ?? '';
    assert.deepEqual(await outcomeOf(bytes, type), { name: 'a "quoted"\r\nname', scores: [1, 2] });
  });

  test('keeps line breaks, delimiters without a line of their own and leading dashes of a value', async () => {
    const value = '\r\n--\r\n--A\r\n-B --B x\r\n\r\n';
    assert.deepEqual(await outcomeOf(`${field('name', value)}--B--`), { name: value });
  });

  test('may have a preamble, an epilogue and no parts', async () => {
    assert.deepEqual(await outcomeOf(`preamble\r\n${field('name', 'x')}--B--\r\nepilogue`), { name: 'x' });
    assert.deepEqual(await outcomeOf('--B--\r\n'), {});
    assert.deepEqual(await outcomeOf('preamble\r\n--B--\r\n'), {});
  });

  test('names a field by a token, a quoted string with escapes, or UTF-8', async () => {
    const part = (parameter: string) =>
      `--B\r\ncontent-disposition:FORM-DATA ; ${parameter}\r\n\r\nx\r\n--B--`;
    assert.deepEqual(await outcomeOf(part('name=note')), { note: 'x' });
    assert.deepEqual(await outcomeOf(part('Name = "n\\"q\\\\b"')), { 'n"q\\b': 'x' });
    assert.deepEqual(await outcomeOf(part('name="é;\\x"')), { 'é;\\x': 'x' });
  });

  test('reads parts of type text/plain in UTF-8 and refuses others at their pointer', async () => {
    const part = (type: string) =>
      `--B\r\nContent-Disposition: form-data; name="note"\r\nContent-Type: ${type}\r\n\r\nx\r\n--B--`;
    assert.deepEqual(await outcomeOf(part('text/plain; charset=utf-8')), { note: 'x' });
    const refused = (message: string) => ({
      code: 'validation_failed',
      errors: [{ pointer: '/note', message }],
    });
    assert.deepEqual(await outcomeOf(part('application/json')), refused('must be text/plain'));
    assert.deepEqual(await outcomeOf(part('text/plain; charset=latin1')), refused('must be UTF-8'));
  });
});

describe('a file', () => {
  for (const parameter of ['filename="a.txt"', 'filename=""', "filename*=UTF-8''a.txt"]) {
    test(`is refused with 422 at its pointer: ${parameter}`, async () => {
      const content = `${field('name', 'x')}--B\r\nContent-Disposition: form-data; name="a/b"; ${parameter}\r\nContent-Type: image/png\r\n\r\n\xff\xfe\r\n--B--`;
      assert.deepEqual(await outcomeOf(Buffer.from(content, 'latin1')), {
        code: 'validation_failed',
        errors: [{ pointer: '/a~1b', message: 'must not be a file' }],
      });
    });
  }
});

describe('malformed multipart content', () => {
  const whole = `${field('name', 'value')}${field('note', 'x')}--B--\r\n`;

  test('is refused when it ends anywhere before its last delimiter', async () => {
    const end = whole.length - 2;
    for (let length = 1; length < end; length += 1) {
      assert.equal(
        await codeOf(whole.slice(0, length)),
        'content_malformed',
        JSON.stringify(whole.slice(0, length)),
      );
    }
    assert.equal(await codeOf(whole.slice(0, end)), 'parsed');
  });

  const malformed: readonly (readonly [string, string])[] = [
    ['text without a delimiter', 'name=x'],
    ['a part without headers', '--B\r\n\r\nx\r\n--B--'],
    ['a part without Content-Disposition', '--B\r\nContent-Type: text/plain\r\n\r\nx\r\n--B--'],
    ['a part without a name', '--B\r\nContent-Disposition: form-data\r\n\r\nx\r\n--B--'],
    ['a part that is an attachment', '--B\r\nContent-Disposition: attachment; name="a"\r\n\r\nx\r\n--B--'],
    ['a part with two names', '--B\r\nContent-Disposition: form-data; name="a"; name="b"\r\n\r\nx\r\n--B--'],
    [
      'a part with two dispositions',
      '--B\r\nContent-Disposition: form-data; name="a"\r\nContent-Disposition: form-data; name="b"\r\n\r\nx\r\n--B--',
    ],
    ['a name that does not end', '--B\r\nContent-Disposition: form-data; name="a\r\n\r\nx\r\n--B--'],
    ['text after a quoted name', '--B\r\nContent-Disposition: form-data; name="a"b\r\n\r\nx\r\n--B--'],
    ['headers that end with the part', '--B\r\nContent-Disposition: form-data; name="a"\r\n--B--'],
    ['a delimiter with text behind it', '--Bx\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n--B--'],
    ['a value that is not UTF-8', `${field('name', 'bad \xff')}--B--`],
    ['a name that is not UTF-8', `${field('\xff', 'x')}--B--`],
  ];
  for (const [what, content] of malformed) {
    test(`is refused: ${what}`, async () => {
      assert.equal(await codeOf(Buffer.from(content, 'latin1')), 'content_malformed');
    });
  }

  for (const type of [
    'multipart/form-data',
    'multipart/form-data; boundary=""',
    `multipart/form-data; boundary=${'x'.repeat(71)}`,
    'multipart/form-data; boundary="x "',
    'multipart/form-data; boundary="x\u00e9"',
  ]) {
    test(`is refused where the boundary cannot be one: ${type}`, async () => {
      const parsed = await read(whole, type);
      const message = 'multipart/form-data needs a boundary parameter (RFC 2046 §5.1.1)';
      assert.deepEqual(parsed, { ok: false, problem: { code: 'content_malformed', message } });
    });
  }

  test('may have a boundary of 70 characters', async () => {
    const boundary = 'x'.repeat(70);
    const content = whole.replaceAll('--B', `--${boundary}`);
    assert.equal(await codeOf(content, `multipart/form-data; boundary=${boundary}`), 'parsed');
  });
});

describe('the bounds of multipart content', () => {
  test('take formFieldsMax parts and refuse one more', async () => {
    const limits = { ...contentLimitsDefault, formFieldsMax: 3 };
    const parts = (count: number) => `${field('scores', '1').repeat(count)}--B--`;
    assert.equal(await codeOf(parts(3), undefined, limits), 'parsed');
    assert.equal(await codeOf(parts(4), undefined, limits), 'content_malformed');
  });

  test('take a value of multipartFieldBytesMax octets and refuse one more', async () => {
    const limits = { ...contentLimitsDefault, multipartFieldBytesMax: 200_000 };
    const content = (length: number) => `${field('name', 'x'.repeat(length))}--B--`;
    assert.equal(await codeOf(content(200_000), undefined, limits), 'parsed');
    assert.equal(await codeOf(content(200_001), undefined, limits), 'content_too_large');
  });

  test('refuse a part whose disposition stands behind more header than they allow', async () => {
    const limits = { ...contentLimitsDefault, multipartHeaderPairsMax: 2, multipartHeaderBytesMax: 200 };
    const content = (before: string) =>
      `--B\r\n${before}Content-Disposition: form-data; name="name"\r\n\r\nx\r\n--B--`;
    assert.equal(await codeOf(content('X-A: 1\r\n'), undefined, limits), 'parsed');
    assert.equal(await codeOf(content('X-A: 1\r\nX-B: 1\r\n'), undefined, limits), 'content_malformed');
    assert.equal(
      await codeOf(content(`X-A: ${'1'.repeat(200)}\r\n`), undefined, limits),
      'content_malformed',
    );
  });

  test('hold for a hundred thousand empty parts', async () => {
    assert.equal(await codeOf(`${'--B\r\n\r\n\r\n'.repeat(100_000)}--B--`), 'content_malformed');
  });
});
