/**
 * The header fields of responses, each with its meaning. The builders of answers (kernel/answer) and the operations declare which they
 * set; the API document lists them.
 */

export type ResponseField = {
  readonly description: string;
  readonly example?: string | number;
  readonly type?: 'integer';
};

export const responseFields = {
  'API-Version': { description: 'Version of this API, in every response.', example: '1' },
  Accept: { description: 'Media types of content that the resource accepts with this method.' },
  'Accept-Encoding': {
    description: 'Content codings that Comity decodes.',
    example: 'gzip, deflate, br, zstd',
  },
  'Accept-Patch': { description: 'Media types that PATCH accepts here (RFC 5789).' },
  'Accept-Post': { description: 'Media types that POST accepts here.' },
  'Accept-Query': { description: 'Media types that QUERY accepts here, as a structured list (RFC 10008).' },
  'Accept-Ranges': {
    description:
      '`bytes`: Range selects octets of the representation. `none`: it is ignored (RFC 9110 §14.3).',
    example: 'none',
  },
  'Access-Control-Allow-Credentials': {
    description: '`true`: a page may send credentials.',
    example: 'true',
  },
  'Access-Control-Allow-Headers': { description: 'Request fields that a page may send.' },
  'Access-Control-Allow-Methods': { description: 'Methods that a page may use.' },
  'Access-Control-Allow-Origin': {
    description:
      'The origin that may read the response, or `*`. Absent if the origin of the request may not.',
  },
  'Access-Control-Expose-Headers': { description: 'Response fields that a page may read.' },
  'Access-Control-Max-Age': {
    description: 'Seconds for which a browser may cache the preflight response.',
    type: 'integer',
    example: 86400,
  },
  Allow: {
    description: 'Methods that the resource supports for this caller.',
    example: 'GET, HEAD, OPTIONS',
  },
  'Cache-Control': { description: 'How caches may store the response (RFC 9111).', example: 'no-cache' },
  'Comity-Content': {
    description: '`octets`: the content is octets to the program, although its type is text or JSON.',
    example: 'octets',
  },
  'Comity-Position': {
    description:
      'A place in the event log that the list is not behind: `after` of the events reads or streams what happened since, without a gap.',
    example: 'rQkXo0c1i2v3b4n5m6k7j8h9g0f1d2s3a4WzEsMCw0MiwiXQ',
  },
  'Content-Disposition': {
    description: 'Tells a browser to save the content, and under which file name.',
    example: 'attachment; filename="rec_01k1jx7v2mh5s8b4c9d0e6f3ga"',
  },
  'Content-Encoding': {
    description: 'Coding of the content, for longer representations: the preferred one of Accept-Encoding.',
    example: 'br',
  },
  'Content-Location': { description: 'URI where a GET returns the representation in this response.' },
  'Content-Range': {
    description:
      'The octets that a 206 has, and the length of the representation (RFC 9110 §14.4); of a 416, the length alone.',
    example: 'bytes 0-499/1234',
  },
  'Content-Security-Policy': {
    description: 'Forbids a browser to run anything in the content.',
    example: "sandbox; default-src 'none'",
  },
  'Comity-Plan': {
    description:
      'How the list was read, with `Prefer: plan`, for administrators: a token and a sentence (RFC 9651). `index`, `one` and `nothing` cost what they return; `words`, `references`, `scan` and `groups` may cost more.',
    example: 'index;words="Walks the index of price in the order of the list: a page costs what it returns."',
  },
  Deprecation: {
    description: 'Time from which the resource is deprecated (RFC 9745).',
    example: '@1735689600',
  },
  ETag: {
    description: 'Strong validator of the representation, for If-Match and If-None-Match.',
    example: '"42"',
  },
  'Last-Modified': {
    description: 'Time of the last change of the resource.',
    example: 'Sat, 01 Aug 2026 09:30:00 GMT',
  },
  Link: {
    description:
      'Other pages of the list: `first`, `prev`, `next`, and `last` if it is known (RFC 8288); `deprecation` on deprecated resources.',
  },
  Location: { description: 'URI of the created resource, or target of the redirect.' },
  'Max-Content-Length': {
    description: 'Maximum length of request content in octets.',
    type: 'integer',
    example: 1_048_576,
  },
  'Preference-Applied': {
    description: 'The preferences of Prefer that Comity applied (RFC 7240).',
    example: 'return=minimal',
  },
  RateLimit: {
    description: 'Requests left, and seconds until the limit resets, if a limit applies.',
    example: '"reads";r=5999;t=60',
  },
  'RateLimit-Policy': {
    description: 'Requests that the caller may make within a number of seconds, if a limit applies.',
    example: '"reads";q=6000;w=60',
  },
  'Repr-Digest': {
    description:
      'Digest of the whole representation, also in a 206, if Want-Repr-Digest asks for it (RFC 9530).',
    example: 'sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:',
  },
  'Retry-After': { description: 'Seconds to wait before the next attempt.', type: 'integer', example: 1 },
  'Sec-WebSocket-Protocol': {
    description: 'The subprotocol, if the client offered it (RFC 6455).',
    example: 'comity.v1',
  },
  'Sec-WebSocket-Version': { description: 'The supported version (RFC 6455).', example: '13' },
  'Set-Cookie': {
    description: 'Sets or removes the session cookie.',
    example:
      '__Host-comity_session=ses_01k1jx7v2mh5s8b4c9d0e6f3ga.secret; Path=/; Max-Age=2592000; HttpOnly; Secure; SameSite=Lax',
  },
  Sunset: {
    description: 'Time from which the resource may be unavailable (RFC 8594).',
    example: 'Fri, 01 Jan 2027 00:00:00 GMT',
  },
  'Tus-Checksum-Algorithm': { description: 'Algorithms of `Upload-Checksum`.', example: 'sha1,sha256,md5' },
  'Tus-Extension': {
    description: 'Extensions of tus 1.0 that uploads support.',
    example: 'creation,checksum',
  },
  'Tus-Max-Size': { description: 'Octets of the longest upload.', type: 'integer', example: 20971520 },
  'Tus-Resumable': { description: 'Version of tus that uploads speak.', example: '1.0.0' },
  'Tus-Version': { description: 'Versions of tus that uploads speak.', example: '1.0.0' },
  'Upload-Complete': { description: '`?1`: the upload has all its octets.', example: '?0' },
  'Upload-Expires': {
    description: 'Until when the upload can be continued, or be named by a document.',
    example: 'Sun, 02 Aug 2026 09:30:00 GMT',
  },
  'Upload-Length': {
    description: 'Octets of the whole upload, if they are known.',
    type: 'integer',
    example: 73400320,
  },
  'Upload-Limit': {
    description: 'Limits of uploads (resumable upload draft).',
    example: 'max-size=20971520, max-age=86400',
  },
  'Upload-Offset': {
    description: 'Octets that the upload has, all of them durable. The next piece follows them.',
    type: 'integer',
    example: 1048576,
  },
  Upgrade: {
    description: 'The protocol that the connection changes to or, with 426, that the resource requires.',
    example: 'websocket',
  },
  Vary: { description: 'Request fields that the response depends on.', example: 'Accept, Accept-Encoding' },
  'WWW-Authenticate': {
    description: 'The accepted authentication schemes.',
    example: 'Bearer realm="comity"',
  },
  'X-Accel-Buffering': { description: '`no`: proxies must not buffer events.', example: 'no' },
  'X-Content-Type-Options': {
    description: '`nosniff`: browsers must treat the content as Content-Type says.',
    example: 'nosniff',
  },
  'X-RateLimit-Remaining': {
    description: 'Requests left, if a limit applies.',
    type: 'integer',
    example: 5999,
  },
  'X-Total-Count': {
    description: 'Number of resources in the whole list, with `Prefer: count=exact`.',
    type: 'integer',
    example: 137,
  },
} as const satisfies Record<string, ResponseField>;

export type FieldName = keyof typeof responseFields;

/**
 * Joins the lines of `Vary` (RFC 9110 §12.5.5) into its first: some caches and proxies read one line alone.
 *
 * @param fields name, value, ...
 * @returns the same list if it has one line at most
 */
export function withVaryOnce(fields: readonly string[]): readonly string[] {
  const first = lineOf(fields, 'Vary', 0);
  if (first < 0 || lineOf(fields, 'Vary', first + 2) < 0) return fields;
  const joined: string[] = [];
  for (let index = 0; index < fields.length; index += 2) {
    const [name, value] = [fields[index] as string, fields[index + 1] as string];
    if (name !== 'Vary' || index === first) joined.push(name, value);
    else joined[first + 1] += `, ${value}`;
  }
  return joined;
}

function lineOf(fields: readonly string[], name: FieldName, from: number): number {
  for (let index = from; index < fields.length; index += 2) if (fields[index] === name) return index;
  return -1;
}
