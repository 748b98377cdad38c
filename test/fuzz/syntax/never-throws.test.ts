import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isUnderstoodTransferCoding, parseMaxForwards } from '../../../src/http/request-fields.ts';
import {
  parseAcceptQuery,
  parseContentCoding,
  preferredCoding,
  preferredMediaType,
  prefersHtml,
} from '../../../src/http/syntax/accept.ts';
import { decodeBasic, parseCredentials } from '../../../src/http/syntax/authorization.ts';
import {
  formatContentDisposition,
  parseRequestDisposition,
} from '../../../src/http/syntax/content-disposition.ts';
import { parseDigests, wantsDigest } from '../../../src/http/syntax/digest.ts';
import { parseEntityTagList } from '../../../src/http/syntax/entity-tag.ts';
import { fileNameFrom, plainFileName } from '../../../src/http/syntax/file-name.ts';
import { parseHttpDate } from '../../../src/http/syntax/http-date.ts';
import { parseJson } from '../../../src/http/syntax/json.ts';
import { parseJsonPointer } from '../../../src/http/syntax/json-pointer.ts';
import { parseLink } from '../../../src/http/syntax/link.ts';
import { parseMediaType } from '../../../src/http/syntax/media-type.ts';
import { parsePrefer } from '../../../src/http/syntax/prefer.ts';
import { parseQueryString } from '../../../src/http/syntax/query-string.ts';
import { selectExtents } from '../../../src/http/syntax/range.ts';
import { decodePathSegments, parseRequestTarget } from '../../../src/http/syntax/request-target.ts';
import { parseIdempotencyKey } from '../../../src/http/syntax/structured-field.ts';
import { isHost, isOrigin } from '../../../src/http/syntax/uri.ts';
import { bounds, fieldText } from './bounds.ts';

const readers: Readonly<Record<string, (text: string) => unknown>> = {
  preferredMediaType: (text) => preferredMediaType(text, ['application/json', text]),
  prefersHtml,
  preferredCoding: (text) => preferredCoding(text, ['br', 'gzip']),
  parseAcceptQuery,
  parseCredentials: (text) => [parseCredentials(text), parseCredentials(`Basic ${text}`)],
  decodeBasic,
  parseContentCoding,
  parseRequestDisposition: (text) => [
    parseRequestDisposition(text),
    parseRequestDisposition(`attachment; filename*=${text}`),
  ],
  formatContentDisposition: (text) => formatContentDisposition('inline', text),
  parseDigests: (text) => [parseDigests(text), parseDigests(`sha-256=${text}`), wantsDigest(text, 'sha-256')],
  selectExtents: (text) => [selectExtents(text, 1000), selectExtents(`bytes=${text}`, 1000)],
  fileNameFrom: (text) => [fileNameFrom(text), plainFileName(text)],
  parseEntityTagList,
  isHost: (text) => [isHost(text), isHost(`[${text}]`)],
  parseHttpDate: (text) => parseHttpDate(text, 0),
  parseIdempotencyKey,
  parseJson: (text) => parseJson(text, { depthMax: 8, keysMax: 8 }),
  parseJsonPointer,
  parseLink: (text) => [parseLink(text), parseLink(`<a>; ${text}`)],
  parseMaxForwards,
  parseMediaType: (text) => [parseMediaType(text), parseMediaType(`a/b;${text}`)],
  isOrigin,
  parsePrefer,
  parseQueryString,
  parseRequestTarget: (text) =>
    ['GET', 'CONNECT', 'OPTIONS'].map((method) => parseRequestTarget(method, text)),
  decodePathSegments: (text) => [decodePathSegments(text), decodePathSegments(`/${text}`)],
  isUnderstoodTransferCoding,
};

for (const [name, read] of Object.entries(readers)) {
  test(`${name} never throws`, () => {
    fc.assert(
      fc.property(fieldText, (text) => {
        assert.doesNotThrow(() => read(text));
      }),
      bounds,
    );
  });
}
