import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatAcceptQuery, parseAcceptQuery } from '../../../src/http/syntax/accept.ts';
import { decodeBasic, formatChallenge, parseCredentials } from '../../../src/http/syntax/authorization.ts';
import { formatEntityTag, parseEntityTagList } from '../../../src/http/syntax/entity-tag.ts';
import { formatHttpDate, parseHttpDate } from '../../../src/http/syntax/http-date.ts';
import { formatJsonPointer, parseJsonPointer } from '../../../src/http/syntax/json-pointer.ts';
import { formatLink, parseLink } from '../../../src/http/syntax/link.ts';
import { formatMediaType, parseMediaType } from '../../../src/http/syntax/media-type.ts';
import { formatPreferenceApplied, parsePrefer } from '../../../src/http/syntax/prefer.ts';
import { formatQueryString, parseQueryString } from '../../../src/http/syntax/query-string.ts';
import { decodePathSegments, parseRequestTarget } from '../../../src/http/syntax/request-target.ts';
import { formatString, parseIdempotencyKey } from '../../../src/http/syntax/structured-field.ts';
import { bounds, quotable, token } from './bounds.ts';

const etagc = fc.integer({ min: 0x21, max: 0xff }).filter((code) => code !== 0x22 && code !== 0x7f);
const opaque = fc.string({ unit: etagc.map((code) => String.fromCharCode(code)) });
const ascii = fc.string({ unit: 'grapheme-ascii' });
const key = fc.stringMatching(/^[a-z][a-z0-9_.*-]{0,9}$/);
const wholeText = fc.string({ unit: 'grapheme' });
const attributes = fc.array(fc.tuple(token, quotable));

function unique(pairs: readonly (readonly [string, string])[]): [string, string][] {
  return [...new Map(pairs)];
}

test('entity tags are read as they were written', () => {
  fc.assert(
    fc.property(fc.array(fc.record({ weak: fc.boolean(), opaque }, { noNullPrototype: true })), (tags) => {
      assert.deepEqual(parseEntityTagList(tags.map(formatEntityTag).join(', ')), tags);
    }),
    bounds,
  );
});

test('HTTP dates are read as they were written, in all three forms', () => {
  fc.assert(
    fc.property(fc.integer({ min: -62_167_219_200, max: 253_402_300_799 }), (second) => {
      const text = formatHttpDate(second * 1000);
      assert.equal(parseHttpDate(text, 0), second * 1000);
      const [weekday = '', day = '', month = '', year = '', time = ''] = text.replace(',', '').split(' ');
      assert.equal(
        parseHttpDate(`${weekday} ${month} ${day.replace(/^0/, ' ')} ${time} ${year}`, 0),
        second * 1000,
      );
      const long = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
      const name = long.find((one) => one.startsWith(weekday));
      const rfc850 = `${name}, ${day}-${month}-${year.slice(2)} ${time} GMT`;
      assert.equal(parseHttpDate(rfc850, second * 1000), second * 1000);
    }),
    bounds,
  );
});

test('media types are read as they were written', () => {
  fc.assert(
    fc.property(token, token, attributes, (type, subtype, pairs) => {
      const parameters = new Map(pairs);
      const read = parseMediaType(formatMediaType({ type: `${type}/${subtype}`, parameters }));
      assert.equal(read?.type, `${type}/${subtype}`);
      assert.deepEqual(read?.parameters, parameters);
    }),
    bounds,
  );
});

test('preferences are read as they were written', () => {
  fc.assert(
    fc.property(attributes, (pairs) => {
      const read = parsePrefer(formatPreferenceApplied(unique(pairs)));
      assert.deepEqual(
        [...read].map(([name, { value }]) => [name, value]),
        unique(pairs),
      );
    }),
    bounds,
  );
});

test('a challenge has the grammar of credentials, and is read as it was written', () => {
  fc.assert(
    fc.property(token, attributes, (scheme, pairs) => {
      fc.pre(pairs.length > 0);
      const parameters: Record<string, string> = Object.assign(
        Object.create(null),
        Object.fromEntries(pairs),
      );
      const read = parseCredentials(formatChallenge({ scheme, parameters }));
      assert.deepEqual(
        { ...read, parameters: new Map(read?.parameters) },
        {
          scheme,
          parameters: new Map(Object.entries(parameters)),
        },
      );
    }),
    bounds,
  );
});

test('Basic credentials are decoded to what was encoded', () => {
  const printable = wholeText.filter((text) => !/\p{Cc}/u.test(text));
  fc.assert(
    fc.property(printable, printable, (user, password) => {
      fc.pre(!user.includes(':'));
      const token68 = Buffer.from(`${user}:${password}`).toString('base64');
      assert.deepEqual(decodeBasic(token68), { user, password });
    }),
    bounds,
  );
});

test('idempotency keys are read as they were written', () => {
  fc.assert(
    fc.property(ascii, (text) => {
      assert.equal(parseIdempotencyKey(formatString(text)), text === '' ? undefined : text);
    }),
    bounds,
  );
});

test('Accept-Query is read as it was written', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(token, token, fc.array(fc.tuple(key, ascii)))), (rows) => {
      const ranges = rows.map(([type, subtype, pairs]) => ({
        type: `${type}/${subtype}`,
        parameters: new Map(pairs),
      }));
      const written = ranges.map(({ type, parameters }) => ({
        type,
        parameters: Object.fromEntries(parameters),
      }));
      assert.deepEqual(parseAcceptQuery(formatAcceptQuery(written)), ranges);
    }),
    bounds,
  );
});

test('links are read as they were written', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.webUrl(), quotable, attributes)), (rows) => {
      const links = rows.map(([target, rel, pairs]) => {
        const parameters: Record<string, string> = Object.create(null);
        for (const [name, value] of pairs) if (name !== 'rel') parameters[name] = value;
        return { target, rel, parameters };
      });
      assert.deepEqual(parseLink(formatLink(links)), links);
    }),
    bounds,
  );
});

test('query strings are read as they were written, and as URLSearchParams reads them', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(wholeText, wholeText)), (pairs) => {
      const text = formatQueryString(pairs);
      assert.equal(text, new URLSearchParams(pairs).toString());
      assert.deepEqual(parseQueryString(text), pairs);
    }),
    bounds,
  );
});

test('path segments are decoded to what was encoded, and the path is a valid target', () => {
  const segment = wholeText.filter((text) => text !== '.' && text !== '..' && !text.includes('\0'));
  fc.assert(
    fc.property(fc.array(segment, { minLength: 1 }), (segments) => {
      const path = `/${segments.map(encodeURIComponent).join('/')}`;
      assert.deepEqual(parseRequestTarget('GET', path), { form: 'origin', path, query: undefined });
      assert.deepEqual(decodePathSegments(path), segments);
    }),
    bounds,
  );
});

test('JSON pointers are read as they were written', () => {
  fc.assert(
    fc.property(fc.array(wholeText), (tokens) => {
      assert.deepEqual(parseJsonPointer(formatJsonPointer(tokens)), tokens);
    }),
    bounds,
  );
});
