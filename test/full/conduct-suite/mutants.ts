/** For each clause of the suite a mutant of the clean server that breaks it and, as far as that is possible, nothing else. */
import type { Mutant } from './standing-between.ts';

type Text = string;
type Change = (text: Text, request: Text) => Text;

const every = /^/;
const get = /^GET \/notes/;
const list = /^GET \/notes /;
const member = /^GET \/notes\//;

const status =
  (line: string): Change =>
  (text) =>
    text.replace(/^HTTP\/1.1 .*/, `HTTP/1.1 ${line}`);

/** Sets the field, or removes it. */
const field =
  (name: string, value?: string): Change =>
  (text) => {
    const without = text.replace(new RegExp(`\\r\\n${name}: .*(?=\\r\\n)`, 'gi'), '');
    return value === undefined ? without : without.replace('\r\n', `\r\n${name}: ${value}\r\n`);
  };

/** Replaces the content, and the length with it. */
const content =
  (make: (before: Text) => Text): Change =>
  (text) => {
    const end = text.indexOf('\r\n\r\n');
    const made = make(text.slice(end + 4));
    const head = text.slice(0, end).replace(/Content-Length: \d+/i, `Content-Length: ${made.length}`);
    return `${head}\r\n\r\n${made}`;
  };

const strip =
  (name: string): ((text: Text) => Text) =>
  (text) =>
    field(name)(text, text);

const whole = (line: string, fields = '', body = ''): Text =>
  `HTTP/1.1 ${line}\r\n${fields}Connection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

const always =
  (text: Text): Change =>
  () =>
    text;

const ok = whole('200 OK', 'Content-Type: application/json\r\n', '{}');
const both =
  (...changes: readonly Change[]): Change =>
  (text, request) =>
    changes.reduce((current, change) => change(current, request), text);

/** The change from the given matching request on. */
function from(count: number, change: Change): Change {
  let seen = 0;
  return (text, request) => {
    seen += 1;
    return seen >= count ? change(text, request) : text;
  };
}

const methods: Readonly<Record<string, Mutant>> = {
  'method-unknown': { when: /^FROBNICATE/, answer: always(ok) },
  'method-case': { when: /^get /, answer: always(ok) },
  'method-not-allowed': { when: /^PROPFIND/, answer: status('405 Method Not Allowed') },
  'allow-is-true': { when: /^HEAD \/notes /, answer: status('405 Method Not Allowed') },
  'allow-is-whole': { when: /^OPTIONS/, answer: (text) => text.replace('Allow: GET, HEAD', 'Allow: GET') },
  'options-allow': { when: /^OPTIONS/, answer: field('Allow') },
  'options-server': { when: /^OPTIONS \*/, answer: always(whole('404 Not Found')) },
  'get-missing': { when: get, answer: (text) => text.replace('404 Not Found', '200 OK') },
  'get-is-safe': { when: member, answer: (text) => field('ETag', `"${Math.random()}"`)(text, '') },
  'get-content-ignored': { when: /^GET .*Content-Length: [1-9]/s, answer: status('500 Oops') },
  'head-fields': { when: /^HEAD/, answer: field('Content-Type', 'text/plain') },
  'head-length': { when: /^HEAD/, answer: field('Content-Length', '1') },
  'head-content': { when: /^HEAD/, answer: (text) => `${text}x` },
  'created-stays': { when: member, answer: from(2, status('404 Not Found')) },
  'post-created': { when: /^POST/, answer: status('200 OK') },
  'post-location': { when: /^POST/, answer: field('Location', '/notes/nowhere') },
  'put-replaces': { when: /^PUT/, request: (text) => text.replace('"title":"other', '"title":"lost.') },
  'put-idempotent': { when: /^PUT/, answer: from(2, status('409 Conflict')) },
  'put-content-range': { when: /^PUT/, request: strip('Content-Range') },
  'delete-removes': {
    when: /^DELETE/,
    request: (text) => text.replace('DELETE', 'GET'),
    answer: always('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n'),
  },
  'delete-idempotent': { when: /^DELETE/, answer: (text) => text.replace('404 Not Found', '500 Oops') },
  trace: {
    when: /^TRACE/,
    answer: (_, request) => whole('200 OK', 'Content-Type: message/http\r\n', request),
  },
  'connect-origin': { when: /^CONNECT 1/, answer: always('') },
  'connect-target': { when: /^CONNECT \//, answer: always('HTTP/1.1 200 OK\r\n\r\n') },
};

const negotiation: Readonly<Record<string, Mutant>> = {
  'content-type-true': { when: member, answer: content(() => 'not JSON') },
  'accept-json': { when: /^GET .*Accept: application\/json/s, answer: field('Content-Type', 'text/html') },
  'accept-nothing': { when: /Accept: image\/x-conduct/, answer: status('200 OK') },
  'accept-malformed': { when: /Accept: ;;;/, answer: status('500 Oops') },
  'coding-decodes': { when: /Accept-Encoding: gzip/, answer: content(() => 'not gzip') },
  'coding-varies': { when: /Accept-Encoding: gzip/, answer: field('Vary') },
  'coding-tag': { when: /Accept-Encoding: gzip/, answer: (text) => text.replace('-gzip"', '"') },
  'coding-unknown': { when: /Accept-Encoding: x-conduct/, answer: field('Content-Encoding', 'x-conduct') },
  'content-type-unknown': { when: /^POST .*x-conduct-unknown/s, answer: status('400 Bad Request') },
  'content-coding-unknown': { when: /^POST/, request: strip('Content-Encoding') },
  'content-malformed': { when: /^POST .*\{"a":$/s, answer: status('500 Oops') },
};

const noneMatch: Mutant = { when: get, request: strip('If-None-Match') };
const noMatch: Mutant = { when: /^(?:PATCH|PUT|DELETE)/, request: strip('If-Match') };
const refusesMatch: Mutant = { when: /^PATCH .*If-Match/s, answer: status('412 Precondition Failed') };
const notModified: Change = both(status('304 Not Modified'), (text) =>
  text.slice(0, text.indexOf('\r\n\r\n') + 4),
);

const conditions: Readonly<Record<string, Mutant>> = {
  'etag-present': { when: member, answer: field('ETag') },
  'etag-form': { when: member, answer: field('ETag', 'abc') },
  'etag-changes': { when: member, answer: field('ETag', '"same"') },
  'last-modified-form': { when: member, answer: field('Last-Modified', '2026-01-01T00:00:00Z') },
  ...{ 'if-none-match': noneMatch, 'if-none-match-list': noneMatch, 'if-none-match-any': noneMatch },
  'if-none-match-weak': noneMatch,
  'if-none-match-other': { when: /If-None-Match/, answer: notModified },
  'not-modified-fields': { when: /If-None-Match/, answer: field('ETag') },
  'if-modified-since': { when: get, request: strip('If-Modified-Since') },
  'if-modified-since-ignored': { when: /If-Modified-Since/, answer: notModified },
  ...{ 'if-match-stale': noMatch, 'if-match-strong': noMatch, 'if-match-delete': noMatch },
  ...{ 'if-match-current': refusesMatch, 'if-match-list': refusesMatch, 'if-match-any': refusesMatch },
  'if-match-missing': { when: /^PUT .*If-Match: \*/s, answer: status('201 Created') },
  'if-none-match-put': { when: /^PUT/, request: strip('If-None-Match') },
  'if-unmodified-since': { when: /^(?:PATCH|PUT)/, request: strip('If-Unmodified-Since') },
  'if-match-first': noMatch,
  'preconditions-last': { when: /x-conduct-unknown.*If-Match/s, answer: status('412 Precondition Failed') },
  'lost-update': noMatch,
};

/** A JSON Patch without the operations that fail. */
const halfPatch = content((text) => {
  const operations = JSON.parse(text);
  return JSON.stringify(Array.isArray(operations) ? operations.slice(0, 1) : operations);
});

const patches: Readonly<Record<string, Mutant>> = {
  'patch-accept': { when: /^OPTIONS/, answer: field('Accept-Patch') },
  'patch-unsupported': { when: /^PATCH .*x-conduct-unknown/s, answer: field('Accept-Patch') },
  'patch-malformed': { when: /^PATCH .*\{"a":$/s, answer: always(ok) },
  'patch-missing': { when: /^PATCH/, answer: (text) => text.replace('404 Not Found', '422 Unprocessable') },
  'merge-patch-rest': {
    when: /^PATCH .*merge-patch/s,
    request: (text) => content((body) => body.replace('{', '{"done":true,'))(text, ''),
  },
  'json-patch-applied': { when: /^PATCH .*json-patch/s, request: (text) => content(() => '[]')(text, '') },
  'json-patch-atomic': {
    when: /^PATCH .*"op":"test"/s,
    request: (text) => halfPatch(text, ''),
    answer: status('409 Conflict'),
  },
  'json-patch-path': {
    when: /^PATCH .*conductNotThere/s,
    request: (text) => halfPatch(text, ''),
    answer: status('409 Conflict'),
  },
  'json-patch-form': { when: /^PATCH .*"op":"conduct"/s, answer: always(ok) },
};

const queries: Readonly<Record<string, Mutant>> = {
  'query-known': { when: /^QUERY/, answer: always(whole('404 Not Found')) },
  'query-allow': { when: /^OPTIONS/, answer: (text) => text.replace(', QUERY', '') },
  'query-type-missing': { when: /^QUERY (?!.*Content-Type)/s, answer: always(ok) },
  'query-type-unknown': { when: /^QUERY .*x-conduct-unknown/s, answer: status('400 Bad Request') },
  'query-type-sniffed': { when: /^QUERY .*image\/png/s, answer: always(ok) },
  'query-malformed': { when: /^QUERY .*\{"a":$/s, answer: always(ok) },
  'query-accept': { when: /^OPTIONS/, answer: field('Accept-Query') },
  'query-accept-form': { when: /^OPTIONS/, answer: field('Accept-Query', '"application/json') },
  'query-safe': { when: member, answer: (text) => field('ETag', `"${Math.random()}"`)(text, '') },
  'query-location': { when: /^QUERY/, answer: field('Location', '/notes/nowhere') },
  'query-content-location': { when: /^QUERY/, answer: field('Content-Location', '/notes/nowhere') },
  'query-not-modified': { when: /^QUERY/, request: strip('If-None-Match') },
  'query-not-confused': { when: /^QUERY .*If-None-Match/s, answer: notModified },
  'query-cross-origin': {
    when: /^OPTIONS/,
    answer: (text) => text.replace(/(Allow-Methods: .*)QUERY, /, '$1'),
  },
};

const wrongRange: Mutant = { when: /Range: bytes/, answer: field('Content-Range', 'bytes 0-0/1') };

const ranges: Readonly<Record<string, Mutant>> = {
  ...{ 'range-first': wrongRange, 'range-open': wrongRange, 'range-suffix': wrongRange },
  'range-accepted': { when: member, answer: field('Accept-Ranges') },
  'range-unsatisfiable': { when: /Range: bytes=\d\d/, answer: status('206 Partial Content') },
  'range-ignored': { when: /Range: conducts/, answer: status('400 Bad Request') },
  'range-several': { when: /Range: bytes=0-1,4-5/, answer: status('206 Partial Content') },
  'if-range-other': { when: member, request: strip('If-Range') },
  'if-range-current': { when: /If-Range/, request: strip('Range') },
};

const problem =
  (name: string, value: unknown): Change =>
  (text, request) =>
    text.includes('problem+json')
      ? content((body) => JSON.stringify({ ...JSON.parse(body || '{}'), [name]: value }))(text, request)
      : text;

const contents: Readonly<Record<string, Mutant>> = {
  date: { when: member, answer: field('Date') },
  'cache-control-form': { when: member, answer: field('Cache-Control', 'max-age=soon') },
  'private-stays-private': { when: list, answer: field('Cache-Control', 'public, max-age=60') },
  'authorization-varies': { when: list, answer: both(field('Cache-Control'), field('Vary')) },
  'error-content': {
    when: get,
    answer: (text) => (text.includes(' 404 ') ? field('Content-Type', 'text/html')(text, '') : text),
  },
  'problem-members': { when: get, answer: problem('title', 5) },
  'problem-status': { when: get, answer: problem('status', 418) },
  'problem-type': { when: get, answer: problem('type', 'not a URI') },
  'validation-content': { when: /^POST .*\[\]$/s, answer: status('500 Oops') },
  'error-is-quiet': { when: get, answer: problem('stack', '\n    at handle (/srv/app.js:1:2)') },
};

/** Loses the key of the third request on. */
const keyOf3 = from(3, field('Idempotency-Key'));

const access: Readonly<Record<string, Mutant>> = {
  challenge: { when: list, answer: field('WWW-Authenticate') },
  'credentials-wrong': { when: /Authorization: Bearer conduct-/, answer: status('500 Oops') },
  'credentials-malformed': { when: /Authorization: Basic !!!/, answer: always(ok) },
  'scheme-case': { when: /Authorization: bearer /, answer: status('401 Unauthorized') },
  'write-needs-credentials': {
    when: /^POST (?!.*Authorization)/s,
    request: (text) => text.replace('\r\n', '\r\nAuthorization: Bearer clean-token-123\r\n'),
  },
  'credentials-not-echoed': {
    when: /Authorization: Bearer conduct-/,
    answer: (text, request) => field('Refused', /Bearer (\S+)/.exec(request)?.[1])(text, request),
  },
  preflight: { when: /^OPTIONS .*Request-Method: PUT/s, answer: status('404 Not Found') },
  'preflight-headers': { when: /^OPTIONS/, answer: field('Access-Control-Allow-Headers') },
  'origin-one': {
    when: /Origin:/,
    answer: field('Access-Control-Allow-Origin', 'https://a.example, https://b.example'),
  },
  'origin-credentials': { when: /Origin:/, answer: field('Access-Control-Allow-Origin', '*') },
  'origin-not-reflected': {
    when: /Origin: https:\/\/conduct/,
    answer: both(
      field('Access-Control-Allow-Origin', 'https://conduct.example'),
      field('Access-Control-Allow-Credentials', 'true'),
    ),
  },
  'origin-varies': { when: /Origin:/, answer: field('Vary') },
  'origin-errors': {
    when: /Origin:/,
    answer: (text) => (text.includes(' 404 ') ? field('Access-Control-Allow-Origin')(text, '') : text),
  },
  'origin-exposes': { when: /Origin:/, answer: field('Access-Control-Expose-Headers') },
  'key-repeats': { when: /Idempotency-Key/, answer: from(2, status('200 OK')) },
  'key-other-content': { when: /Idempotency-Key/, answer: (text) => text.replace('422', '400') },
  'key-at-once': {
    when: /Idempotency-Key/,
    request: (text) => keyOf3(text, text),
  },
  'rate-limit-form': { when: member, answer: field('RateLimit', 'some') },
};

const upgrades: Readonly<Record<string, Mutant>> = {
  // It waits for the content before it looks at the request.
  'expect-continue': { when: /Expect: 100-continue/ },
  'expect-old-client': { when: /HTTP\/1\.0/, answer: (text) => `HTTP/1.1 100 Continue\r\n\r\n${text}` },
  'expect-unknown': { when: /Expect: conduct/, answer: status('500 Oops') },
  'huge-content': { when: /Content-Length: 1099511627776/, answer: always('') },
  'upgrade-unknown': { when: /Upgrade: conduct/, answer: status('400 Bad Request') },
  'upgrade-h2c': { when: /Upgrade: h2c/, answer: always('HTTP/1.1 101 Switching Protocols\r\n\r\n') },
  'upgrade-websocket-elsewhere': {
    when: /^GET \/notes\/.*Upgrade: websocket/s,
    answer: always('HTTP/1.1 101 Switching Protocols\r\n\r\n'),
  },
  'websocket-accepted': { when: /Upgrade: websocket/, answer: field('Sec-WebSocket-Accept', 'abc') },
  'websocket-version': { when: /Upgrade: websocket/, answer: field('Sec-WebSocket-Version') },
  'websocket-key': { when: /Sec-WebSocket-Key: conduct/, answer: status('101 Switching Protocols') },
  'upgrade-old-client': {
    when: /HTTP\/1\.0.*Upgrade/s,
    answer: always('HTTP/1.1 101 Switching Protocols\r\n\r\n'),
  },
  'tunnel-opens': { when: /^CONNECT/, answer: field('Content-Length', '0') },
  'tunnel-challenge': { when: /^CONNECT/, answer: field('Proxy-Authenticate') },
  'tunnel-port': { when: /^CONNECT 127.0.0.1 /, answer: always('HTTP/1.1 200 OK\r\n\r\n') },
  'tunnel-wrong-credentials': { when: /^CONNECT (?!.*Proxy-Authorization)/s, answer: status('200 OK') },
};

const framing: Readonly<Record<string, Mutant>> = {
  'answers-framed': { when: member, answer: (text) => text.replace('\r\n', '\r\nContent-Length: 7\r\n') },
  'connection-kept': { when: /Connection: keep-alive/ },
  'connection-pipelined': {
    when: /Connection: keep-alive/,
    answer: (text) => text.slice(0, text.length / 2),
  },
  'connection-closed': { when: /Connection: close/, staysOpen: true },
  'old-client-closed': { when: /HTTP\/1\.0/, answer: field('Transfer-Encoding', 'chunked') },
  'target-absolute': { when: /^GET http/, answer: status('404 Not Found') },
  'leading-line': { when: /^\r\n/, answer: status('400 Bad Request') },
  'field-name-case': { when: /hOST/, answer: status('400 Bad Request') },
  'field-space': { when: /Accept: \t/, answer: status('400 Bad Request') },
  'chunked-content': { when: /^POST .*Transfer-Encoding/s, answer: status('411 Length Required') },
  'percent-encoding': { when: /%zz/, answer: status('500 Oops') },
};

/** Requests that the clean server refuses, answered as if there were nothing wrong with them. */
const lenient: Mutant = { when: every, answer: (text) => (/^HTTP\/1.1 [23]/.test(text) ? text : ok) };

const strictness: Readonly<Record<string, Mutant>> = {
  ...Object.fromEntries(
    [
      ...[
        'host-missing',
        'host-twice',
        'host-invalid',
        'space-before-colon',
        'folded-field',
        'field-name-invalid',
      ],
      ...[
        'field-control',
        'bare-cr',
        'length-twice',
        'length-signed',
        'length-negative',
        'length-hexadecimal',
      ],
      ...[
        'chunked-not-last',
        'coding-unknown-transfer',
        'chunk-size-invalid',
        'target-space',
        'target-fragment',
      ],
      ...['version-unknown', 'version-malformed'],
    ].map((id) => [id, lenient]),
  ),
  'target-long': { when: /^GET \S{9999}/, answer: always(whole('500 Oops')) },
  'fields-long': { when: /Conduct: x{9999}/, answer: always(whole('500 Oops')) },
  'length-and-chunks': {
    when: /Content-Length: 5/,
    answer: always('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}'),
    staysOpen: true,
  },
  'goes-on': { when: list, answer: from(8, status('500 Oops')) },
};

export const mutants: Readonly<Record<string, Mutant>> = {
  ...{ ...methods, ...negotiation, ...conditions, ...patches, ...queries, ...ranges, ...contents },
  ...{ ...access, ...upgrades, ...framing, ...strictness },
};
