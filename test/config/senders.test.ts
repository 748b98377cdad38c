/** Senders of webhooks as a configuration declares them (§4.14): what is filled in, and every sentence that refuses a declaration. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { resolveConfiguration } from '../../src/config/configuration.ts';
import { reservedHeaderNames } from '../../src/config/reserved-names.ts';
import { type DeclaredSender, handOnScheduleDefault } from '../../src/config/senders.ts';
import { type PresetName, presetNames, presets } from '../../src/webhooks/presets.ts';
import { prepareKeys } from '../../src/webhooks/signature/mac-keys.ts';
import { keyAlgorithmOf, usesSecrets } from '../../src/webhooks/signature/signature-rule.ts';
import { mistakesFrom } from '../harness/mistakes.ts';

function resolve(senders: unknown): ReadonlyMap<string, DeclaredSender> {
  return resolveConfiguration({ collections: {}, senders } as never).senders;
}

function mistakesIn(senders: unknown): readonly string[] {
  return mistakesFrom(() => resolve(senders));
}

/** Of one sender `x`, without the beginning that says so. */
function refusalsOf(declaration: unknown): readonly string[] {
  return mistakesIn({ x: declaration }).map((mistake) => {
    assert.ok(mistake.startsWith('sender x: '), mistake);
    return mistake.slice('sender x: '.length);
  });
}

function declared(declaration: unknown): DeclaredSender {
  const sender = resolve({ x: declaration }).get('x');
  assert.ok(sender !== undefined);
  return sender;
}

const names = presetNames.join(', ');
const whole = {
  kind: 'hmac',
  header: 'X-Signature',
  hash: 'sha512',
  encoding: 'base64',
  prefix: '',
  separator: null,
  signed: '{timestamp}:{body}',
  timestamp: { header: 'X-Time' },
  key: 'text',
  toleranceSeconds: 300,
};
const key = `whpk_${Buffer.alloc(32, 7).toString('base64')}`;
const noPlace = 'must be the name of a header field, or a JSON Pointer such as /signature/value';
const noTimestamp = "must be { header: 'name' } or { prefix: 't=' }, with unit: one of s, ms, rfc3339";
const noPrefix = 'must be up to 32 printable characters';
const noSchedule = 'must be a list of at most 100 whole numbers of seconds from 1 to 2592000';
const noVariable =
  'must be a name of a variable: a capital letter, then up to 127 capital letters, digits and _';
const noKeysUrl =
  'keysUrl must be an https URL without user and fragment (http:// only for 127.0.0.1, [::1] and localhost)';
const noForwardUrl = 'forward.url must be an http or https URL without user, password and fragment';
const forwarded = (forward: object) => ({
  preset: 'plain',
  forward: { url: 'http://10.0.0.7/hooks', ...forward },
});
const signed = (signature: object) => ({ signature: { ...whole, ...signature } });

const ecdsaKey = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  .publicKey.export({ format: 'der', type: 'spki' })
  .toString('base64');
const tokenRule = {
  ...{ kind: 'jwt', header: 'x-token', algorithm: 'HS256', toleranceSeconds: 0 },
  contentDigest: { claim: 'sha', encoding: 'hex' },
};
/** Keys of the senders that sign by nothing else. */
function keysOf(preset: PresetName): { publicKeys?: readonly string[] } {
  const { signature } = presets[preset];
  const algorithm = keyAlgorithmOf(signature);
  if (usesSecrets(signature) || algorithm === undefined || 'certificateHosts' in signature) return {};
  if (signature.kind === 'jwt' && signature.keysUrl !== undefined) return {};
  return { publicKeys: [algorithm === 'ed25519' ? '07'.repeat(32) : ecdsaKey] };
}
/** The parts that presets leave to the declaration, because only its author knows them. */
const leftOpen: Partial<Record<PresetName, { readonly signature: object }>> = {
  'google-pubsub': { signature: { audience: 'https://x.example', email: 'push@x.example' } },
  paypal: { signature: { receiver: 'WH-1' } },
  sns: { signature: { receiver: 'arn:aws:sns:eu-central-1:1:orders' } },
};
function needsOf(preset: PresetName) {
  return { ...keysOf(preset), ...leftOpen[preset] };
}

test('fills in what the preset says and what nothing says', () => {
  for (const preset of presetNames) {
    const { publicKeys = [] } = keysOf(preset);
    const { rule, ...sender } = declared({ preset, ...needsOf(preset) });
    const { signature } = presets[preset];
    // A rule of which parts are written has each member.
    const members =
      leftOpen[preset] !== undefined && 'signed' in signature ? { id: undefined, timestamp: undefined } : {};
    const whole = { ...members, ...signature, ...leftOpen[preset]?.signature };
    assert.deepEqual(rule, { challenge: undefined, ...presets[preset], signature: whole });
    const keysUrl = signature.kind === 'jwt' && signature.keysUrl ? new URL(signature.keysUrl) : undefined;
    assert.deepEqual(sender, {
      ...{ name: 'x', description: '', preset, secretVariable: 'X_WEBHOOK_SECRET', publicKeys },
      ...{ keysUrl, handOn: { kind: 'inbox' }, schedule: handOnScheduleDefault },
      inFlightMax: undefined,
      ...(preset === 'meta' ? { challengeVariable: 'X_CHALLENGE_TOKEN' } : {}),
    });
  }
});

test('every preset passes the checks that a rule of a user must', () => {
  for (const preset of presetNames) {
    const signature = { ...presets[preset].signature, ...leftOpen[preset]?.signature };
    const again = { ...presets[preset], ...keysOf(preset), signature };
    assert.deepEqual(refusalsOf(again), [], preset);
    assert.deepEqual(refusalsOf({ ...again, preset }), [], preset);
  }
});

test('replaces single parts of a preset, and leaves the others', () => {
  const { rule } = declared({
    preset: 'stripe',
    signature: { toleranceSeconds: 600, header: 'X-Own' },
    dedupe: [{ header: 'X-Id' }, { form: 'id' }],
    keep: ['X-Id', 'x-id', 'X-Other'],
  });
  const { signature, ...others } = presets.stripe;
  assert.deepEqual(rule, {
    ...others,
    challenge: undefined,
    signature: { ...signature, header: 'x-own', toleranceSeconds: 600, id: undefined },
    dedupe: [{ header: 'x-id' }, { form: 'id' }],
    keep: ['x-id', 'x-other'],
  });
  assert.deepEqual(declared({ preset: 'github', signature: {} }).rule.signature, {
    ...presets.github.signature,
    ...{ id: undefined, timestamp: undefined },
  });
});

test('an undefined that is written takes away what may be missing', () => {
  const unsigned = { signed: '{body}', timestamp: undefined, id: undefined, toleranceSeconds: 0 };
  const { signature } = declared({ preset: 'standard', signature: unsigned }).rule;
  assert.ok(signature.kind === 'hmac');
  assert.deepEqual(
    [signature.timestamp, signature.id, signature.header],
    [undefined, undefined, 'webhook-signature'],
  );
});

test('takes a whole signature without a preset, and knows the place of nothing else', () => {
  const { preset, rule } = declared({ signature: whole });
  assert.equal(preset, null);
  assert.deepEqual(rule, {
    signature: { ...whole, header: 'x-signature', timestamp: { header: 'x-time' }, id: undefined },
    ...{ dedupe: [], type: [], keep: [], challenge: undefined },
  });
  assert.deepEqual(declared({ signature: { kind: 'token', header: 'X-Token' } }).rule.signature, {
    kind: 'token',
    header: 'x-token',
  });
});

test('knows who messages are handed on to', () => {
  assert.deepEqual(declared({ preset: 'plain', handler: async () => undefined }).handOn, { kind: 'handler' });
  const [forward] = resolve({
    'a-b': forwarded({ scheme: 'timestamped', headers: { Authorization: 'Bearer x' } }),
  }).values();
  assert.deepEqual(forward?.handOn, {
    kind: 'forward',
    url: new URL('http://10.0.0.7/hooks'),
    scheme: 'timestamped',
    secretVariable: 'A_B_FORWARD_SECRET',
    headers: { authorization: 'Bearer x' },
  });
  assert.equal(forward?.secretVariable, 'A_B_WEBHOOK_SECRET');
  assert.deepEqual(declared({ preset: 'plain', schedule: [], inFlightMax: 1 }).schedule, []);
});

test('takes keys of senders that sign with a key pair', () => {
  const { publicKeys, keysUrl } = declared({
    ...{
      preset: 'standard',
      publicKeys: [key],
      keysUrl: 'https://partner.example/.well-known/jwks.json?a=1',
    },
  });
  assert.deepEqual(publicKeys, [key]);
  assert.equal(keysUrl?.href, 'https://partner.example/.well-known/jwks.json?a=1');
});

const wholes: readonly (readonly [unknown, string])[] = [
  [[], 'senders must be an object, not a list'],
  [{ x: 7 }, 'sender x: must be an object, not a number'],
  [
    { 'My Sender': { preset: 'plain', secretVariable: 'MINE' } },
    'sender My Sender: the name is part of the path and must be up to 64 lower-case letters, digits and -, and not begin with -; did you mean my-sender?',
  ],
  [
    { '4eyes': { preset: 'plain' } },
    `sender 4eyes: must have a secretVariable: 4EYES_WEBHOOK_SECRET ${noVariable}`,
  ],
  [
    { comity: { preset: 'standard' } },
    'sender comity: must have a secretVariable: COMITY_WEBHOOK_SECRET must not begin with COMITY_, which is reserved for settings',
  ],
  [
    { a: { preset: 'plain', secretVariable: 'B_WEBHOOK_SECRET' }, b: { preset: 'plain' } },
    'sender b: secretVariable is B_WEBHOOK_SECRET, which sender a uses already; each secret needs a variable of its own',
  ],
  [
    { a: forwarded({ secretVariable: 'A_WEBHOOK_SECRET' }) },
    'sender a: forward.secretVariable is A_WEBHOOK_SECRET, which sender a uses already; each secret needs a variable of its own',
  ],
];
for (const [senders, sentence] of wholes) {
  test(`says "${sentence}"`, () => assert.deepEqual(mistakesIn(senders), [sentence]));
}

const single: readonly (readonly [unknown, ...string[]])[] = [
  [{}, `must have a preset (${names}), a signature or verify`],
  [{ verify: true }, 'verify must be a function of ({ body, headers, url, secrets }), not a boolean'],
  [
    { verify: () => true, signature: whole },
    'verify takes the place of the signature: leave one of them out',
  ],
  [
    { verify: () => true, publicKeys: ['whpk_'] },
    'publicKeys has no effect, because no signature of this sender uses a key pair',
  ],
  [
    {
      verify: () => true,
      challenge: {
        ...{ kind: 'hmac', query: 'a' },
        proof: { name: 'b', encoding: 'hex', prefix: '' },
      },
    },
    'challenge.proof needs the secret of a signature of the kind hmac',
  ],
  [
    { preset: 'sns' },
    'signature.receiver must be set: the name that the sender has for this receiver, such as the ARN of a topic of SNS, or the id of a webhook of PayPal',
  ],
  [
    { preset: 'sns', signature: { receiver: 'a', certificateHosts: ['*.com'] } },
    'signature.certificateHosts[0] must be a host, such as sns.*.amazonaws.com',
  ],
  [
    { preset: 'sns', signature: { receiver: 'a', certificateHosts: undefined } },
    'signature.certificateUrl and certificateHosts are needed together',
  ],
  [
    { preset: 'sns', signature: { receiver: 'a', lines: undefined } },
    'signature.signed holds {lines}, which needs the member lines',
  ],
  [
    { preset: 'sns', signature: { receiver: 'a', signed: '{lines}{receiver}{body}' } },
    'signature.signed must have either {lines} or the whole body, not both',
  ],
  [
    { preset: 'sns', signature: { receiver: 'a' }, publicKeys: [ecdsaKey] },
    'publicKeys and keysUrl have no effect, because messages of this sender name their certificate',
  ],
  [{ preset: 'strpe' }, `preset must be one of ${names}; did you mean stripe?`],
  [{ preset: 7 }, `preset must be one of ${names}`],
  [{ preset: 'plain', handlr: 1 }, '"handlr" is not a property of a sender; did you mean handler?'],
  [{ preset: 'plain', description: 7 }, 'description must be a string of at most 2000 characters'],
  // Signatures.
  [{ signature: 'x' }, 'signature must be an object, not a string'],
  [
    { signature: { kind: 'hmc' } },
    'signature.kind must be one of hmac, ed25519, ecdsa, rsa, jwt, token; did you mean hmac?',
  ],
  [{ signature: { kind: 'token' } }, `signature.header ${noPlace}`],
  [{ preset: 'gitlab', signature: { header: 'x-token', hash: 'sha1' } }, 'signature has no member "hash"'],
  [
    { signature: { header: 'x', signed: '{body}', key: 'text' } },
    'signature lacks hash, encoding, prefix, separator, toleranceSeconds; add them, or set a preset such as "hmac", which has a default for each',
  ],
  [{ preset: 'plain', signature: { hader: 'x' } }, 'signature has no member "hader"; did you mean header?'],
  [signed({ header: 'a b' }), `signature.header ${noPlace}`],
  [signed({ hash: 'md5' }), 'signature.hash must be one of "sha256", "sha512", "sha1"'],
  [signed({ encoding: 'base32' }), 'signature.encoding must be one of "hex", "base64", "base64url"'],
  [signed({ separator: '|' }), 'signature.separator must be one of ",", " ", ";", null'],
  [signed({ key: 'octets' }), 'signature.key must be one of "text", "base64", "hex"'],
  [
    signed({ header: 'x', signsContent: false }),
    'signature.signsContent is false, but signed holds the content',
  ],
  [signed({ timestamp: { header: 'x-time', as: 'days' } }), `signature.timestamp ${noTimestamp}`],
  [signed({ header: '/a~2' }), `signature.header ${noPlace}`],
  [
    { preset: 'discord', signature: { kind: 'gost' }, publicKeys: [key] },
    'signature.kind must be one of hmac, ed25519, ecdsa, rsa, jwt, token',
  ],
  [
    { preset: 'discord', publicKeys: ['07'.repeat(31)] },
    'publicKeys[0]: a public key must be "whpk_" and base64 of 32 octets, 64 hexadecimal digits, or a JWK of the curve Ed25519',
  ],
  [
    { preset: 'sendgrid', publicKeys: [key] },
    'publicKeys[0]: a public key must be base64 or PEM of a SubjectPublicKeyInfo',
  ],
  [{ preset: 'discord' }, 'must have publicKeys or keysUrl, by which its signatures are verified'],
  [{ preset: 'plaid' }, 'must have publicKeys or keysUrl, by which its signatures are verified'],
  [
    { preset: 'google-pubsub', signature: { audience: 'https://x.example' } },
    'signature.email must be set: the address of the service account that signs, without which messages for others would be accepted',
  ],
  [
    { preset: 'google-pubsub', signature: { email: 'push@x.example' } },
    'signature.audience must be set: the value of aud in its tokens, without which messages for others would be accepted',
  ],
  [
    { preset: 'google-pubsub', signature: { audience: ['https://x.example', ''], email: 'push@x.example' } },
    'signature.audience must be set: the value of aud in its tokens, without which messages for others would be accepted',
  ],
  [
    { preset: 'qstash', signature: { algorithm: 'none' } },
    'signature.algorithm must be one of "HS256", "RS256", "ES256", "EdDSA"',
  ],
  [
    { signature: { kind: 'jwt', header: 'x-token', algorithm: 'HS256' } },
    'signature lacks toleranceSeconds; a rule of the kind jwt needs header, algorithm, toleranceSeconds',
  ],
  [
    { signature: { ...tokenRule, contentDigest: undefined, signsContent: false } },
    'signature must have an audience, a subject or a contentDigest: Comity would accept every token of the sender',
  ],
  [
    { signature: { ...tokenRule, contentDigest: undefined, subject: '{url}' } },
    'signature must have a contentDigest: a token without one does not prove the content (signsContent: false takes it from a sender that signs none)',
  ],
  [
    { signature: { ...tokenRule, signsContent: false } },
    'signature.signsContent is false, but contentDigest names the claim that covers the content',
  ],
  [{ signature: { ...tokenRule, jwksUri: 'https://x.example' } }, 'signature has no member "jwksUri"'],
  [
    { signature: { ...tokenRule, algorithm: 'ES256', keysUrl: 'http://x.example' } },
    `signature.${noKeysUrl}`,
  ],
  [
    { preset: 'plaid', publicKeys: [{ kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA' }] },
    'publicKeys[0]: a JWK must be a public key for signatures, with kty EC, crv P-256, and x and y in base64url',
  ],
  [{ preset: 'plain', answers: { accepted: 500 } }, 'answers.accepted must be one of 200, 204'],
  [{ preset: 'plain', answers: { refused: 500 } }, 'answers.refused must be one of 400, 401, 403, 406'],
  [{ preset: 'plain', jsonInForm: '' }, 'jsonInForm must be the name of a form field'],
  [
    { preset: 'plain', challenge: { kind: 'query-echo', method: 'PUT', query: 'c' } },
    'challenge.method must be one of GET, HEAD, POST',
  ],
  [
    { preset: 'plain', challenge: { kind: 'query-echo', method: 'POST', query: 'c', setsSecret: true } },
    'challenge that sets the secret is a header-echo by POST',
  ],
  [
    {
      preset: 'plain',
      challenge: { kind: 'header-echo', method: 'POST', header: 'X-S', answer: 'a', setsSecret: true },
    },
    'challenge that sets the secret returns the header alone: leave out answer and token',
  ],
  [
    { preset: 'gitlab', challenge: { kind: 'header-echo', method: 'POST', header: 'X-S', setsSecret: true } },
    'challenge.setsSecret needs the secret of a signature of the kind hmac',
  ],
  [
    { preset: 'plain', challenge: { kind: 'query-echo', query: 'c', header: 'X-C' } },
    'challenge must have either query or header, not both',
  ],
  [
    {
      ...{ preset: 'gitlab' },
      challenge: { kind: 'hmac', query: 'c', proof: { name: 'a', encoding: 'hex', prefix: '' } },
    },
    'challenge.proof needs the secret of a signature of the kind hmac',
  ],
  [signed({ prefix: ' v1=' }), `signature.prefix ${noPrefix}`],
  [signed({ prefix: 'é' }), `signature.prefix ${noPrefix}`],
  [
    signed({ prefix: 'v1,', separator: ',' }),
    'signature.prefix contains the separator, at which Comity splits the field',
  ],
  [
    signed({ asymmetricPrefix: '', prefix: 'v1=' }),
    'signature.asymmetricPrefix must be 1 to 32 printable characters',
    'signature.prefix begins like asymmetricPrefix, and one could be taken for the other',
  ],
  [
    signed({ timestamp: { prefix: 't=' }, separator: ',' }),
    'signature.timestamp.prefix begins like prefix, and one could be taken for the other',
  ],
  [
    signed({ timestamp: { prefix: 't=' }, prefix: 'v1=' }),
    'signature.timestamp is in the field of the signatures, which needs a separator',
  ],
  [signed({ timestamp: 'x-time' }), `signature.timestamp ${noTimestamp}`],
  [signed({ toleranceSeconds: -1 }), 'signature.toleranceSeconds must be a whole number from 0 to 86400'],
  [signed({ toleranceSeconds: 86_401 }), 'signature.toleranceSeconds must be a whole number from 0 to 86400'],
  [
    { preset: 'plain', signature: { toleranceSeconds: 300 } },
    'signature.toleranceSeconds has no effect without a signed timestamp',
  ],
  [
    signed({ signed: '' }),
    'signature.signed must be a text of 1 to 500 characters, such as {timestamp}.{body}',
  ],
  [
    signed({ signed: '{timestamp}.{bdy}.{body}' }),
    'signature.signed holds {bdy}, which is not a placeholder; did you mean body?',
  ],
  [signed({ signed: '{timestamp}.{body}}' }), 'signature.signed has a brace without the other'],
  [
    signed({ signed: '{timestamp}.{url}' }),
    'signature.signed must hold {body} or {form}: a signature without the content does not prove it (signsContent: false takes it from a sender that signs none)',
  ],
  [
    signed({ signed: '{timestamp}.{body}{form}' }),
    'signature.signed must have either {body} or {form}, not both: each is the whole body',
  ],
  [
    signed({ signed: '{id}.{timestamp}.{body}' }),
    'signature.signed holds {id}, which needs id to name its field',
  ],
  [
    signed({ timestamp: undefined, toleranceSeconds: 0 }),
    'signature.signed holds {timestamp}, which needs timestamp to name its field',
  ],
  [
    signed({ signed: '{body}' }),
    'signature.timestamp is declared, but signed does not hold {timestamp}: an attacker could change it',
  ],
  [
    signed({ id: 7 }),
    `signature.id ${noPlace}`,
    'signature.id is declared, but signed does not hold {id}: an attacker could change it',
  ],
  [
    signed({ bodyDigestParameter: 'sum' }),
    'signature.bodyDigestParameter has no effect unless {url} and {form} are signed',
  ],
  // Places.
  [
    { preset: 'plain', dedupe: { json: '/id' } },
    "dedupe must be a list of at most 16 places, such as [{ json: '/id' }], not an object",
  ],
  [{ preset: 'plain', dedupe: [{ json: 'id' }] }, 'dedupe[0].json must be a JSON Pointer, such as /data/id'],
  [
    { preset: 'plain', dedupe: [{ json: '/a~2' }] },
    'dedupe[0].json must be a JSON Pointer, such as /data/id',
  ],
  [{ preset: 'plain', dedupe: [{ header: 'a:' }] }, 'dedupe[0].header must be the name of a header field'],
  [{ preset: 'plain', dedupe: [{ form: '' }] }, 'dedupe[0].form must be the name of a form field'],
  [
    { preset: 'plain', dedupe: [{ json: '/a', form: 'b' }, '/id'] },
    'dedupe[0] must be one of { header }, { json } and { form }',
    'dedupe[1] must be one of { header }, { json } and { form }',
  ],
  [
    { preset: 'plain', type: [{ json: '/type' }] },
    "type[0] must be a list of at most 16 places, such as [{ json: '/id' }], not an object",
  ],
  [
    { preset: 'plain', type: 'type' },
    "type must be a list of at most 16 lists of places, such as [[{ json: '/type' }]], not a string",
  ],
  [{ preset: 'plain', type: [[]] }, 'type[0] must hold at least one place'],
  [{ preset: 'plain', keep: 'x-id' }, 'keep must be a list of names of header fields, not a string'],
  [{ preset: 'plain', keep: ['a b'] }, 'keep[0] must be the name of a header field'],
  [{ preset: 'plain', keep: ['Cookie'] }, 'keep[0] is cookie, which holds a secret and is not kept'],
  [
    { preset: 'gitlab', keep: ['X-Gitlab-Token'] },
    'keep[0] is x-gitlab-token, which holds a secret and is not kept',
  ],
  [{ preset: 'plain', challenge: true }, 'challenge must be an object, not a boolean'],
  [
    { preset: 'plain', challenge: { kind: 'echo', query: 'c' } },
    'challenge.kind must be one of query-echo, header-echo, hmac',
  ],
  [
    { preset: 'plain', challenge: { kind: 'query-echo' } },
    'challenge of the kind query-echo must have a query',
  ],
  [
    { preset: 'plain', challenge: { kind: 'header-echo', query: 'c' } },
    'challenge of the kind header-echo must have a header',
  ],
  [{ preset: 'plain', challenge: { kind: 'hmac' } }, 'challenge must have a query or a header'],
  [
    { preset: 'plain', challenge: { kind: 'hmac', query: 'c' } },
    'challenge has a proof if it is of the kind hmac, and only then',
  ],
  [
    { preset: 'plain', challenge: { json: 'type', is: '', answer: 'a', echo: '/c' } },
    'challenge.json must be a JSON Pointer, such as /challenge',
    'challenge.is must be a text of 1 to 200 characters',
  ],
  // Secrets and keys.
  [{ preset: 'plain', secretVariable: 'lower' }, `secretVariable ${noVariable}`],
  [{ preset: 'plain', secretVariable: 7 }, `secretVariable ${noVariable}`],
  [
    { preset: 'plain', secretVariable: 'COMITY_HOST' },
    'secretVariable must not begin with COMITY_, which is reserved for settings',
  ],
  [
    { preset: 'plain', publicKeys: [key] },
    'publicKeys has no effect, because no signature of this sender uses a key pair',
  ],
  [
    { preset: 'gitlab', keysUrl: 'https://x.example/keys' },
    'keysUrl has no effect, because no signature of this sender uses a key pair',
  ],
  [
    { preset: 'standard', publicKeys: ['whpk_AAAA'] },
    'publicKeys[0]: a public key must be "whpk_" and base64 of 32 octets, 64 hexadecimal digits, or a JWK of the curve Ed25519',
  ],
  [{ preset: 'standard', keysUrl: 'http://x.example/keys' }, noKeysUrl],
  [{ preset: 'standard', keysUrl: 'https://me@x.example/keys' }, noKeysUrl],
  // Handing on.
  [
    { preset: 'plain', handler: 'run' },
    'handler must be a function of ({ message, resources }), not a string',
  ],
  [
    { preset: 'plain', handler: (a: unknown, b: unknown, c: unknown) => [a, b, c] },
    'handler has 3 parameters, and is given two: message and resources',
  ],
  [
    { ...forwarded({}), handler: () => undefined },
    'handler and forward must not both be set; a handler can forward messages itself',
  ],
  [{ preset: 'plain', forward: 'http://x' }, 'forward must be an object, not a string'],
  [{ preset: 'plain', forward: {} }, noForwardUrl],
  [forwarded({ url: 'ftp://x/' }), noForwardUrl],
  [forwarded({ url: 'http://me:word@x/' }), noForwardUrl],
  [forwarded({ url: 'http://x/#y' }), noForwardUrl],
  [forwarded({ uri: 'http://x' }), 'forward has no member "uri"; did you mean url?'],
  [forwarded({ scheme: 'svix' }), 'forward.scheme must be one of standard, timestamped, plain'],
  [forwarded({ secretVariable: 'a' }), `forward.secretVariable ${noVariable}`],
  [forwarded({ headers: [] }), 'forward.headers must be an object, not a list'],
  [forwarded({ headers: { 'a b': '' } }), 'forward.headers["a b"] is not the name of a header field'],
  [forwarded({ headers: { A: '1', a: '2' } }), 'forward.headers["a"] is declared twice'],
  [
    forwarded({ headers: { a: 'x\r\ny: z' } }),
    'forward.headers["a"] must be a text of at most 4096 characters that a header field can hold',
  ],
  [{ preset: 'plain', schedule: [0] }, `schedule ${noSchedule}`],
  [{ preset: 'plain', schedule: 5 }, `schedule ${noSchedule}`],
  [{ preset: 'plain', inFlightMax: 0 }, 'inFlightMax must be a whole number from 1 to 1024'],
  [{ preset: 'plain', inFlightMax: 1025 }, 'inFlightMax must be a whole number from 1 to 1024'],
];
for (const [declaration, ...sentences] of single) {
  test(`says "${sentences.join('" and "')}"`, () => assert.deepEqual(refusalsOf(declaration), sentences));
}

test('tells every mistake of every sender at once', () => {
  const mistakes = mistakesIn({
    a: { preset: 'none', handler: 1, keep: [''] },
    b: { signature: { ...whole, hash: 'x', key: 'y' }, inFlightMax: '2' },
  });
  assert.deepEqual(
    mistakes.map((mistake) => mistake.split(' ', 3).join(' ')),
    [
      'sender a: preset',
      'sender a: keep[0]',
      'sender a: handler',
      'sender b: inFlightMax',
      'sender b: signature.hash',
      'sender b: signature.key',
    ],
  );
});

test('reserves the header fields that webhooks of our own have, and those that say where a message came from', () => {
  for (const name of [...reservedHeaderNames, 'Comity-Sender']) {
    assert.deepEqual(refusalsOf(forwarded({ headers: { [name]: 'x' } })), [
      `forward.headers["${name}"] is a field that Comity sets itself`,
    ]);
  }
});

test('a rule that is taken is one that can be verified by', () => {
  const primitives = { importKey: () => 0, mac: () => new Uint8Array(), sha256: () => new Uint8Array() };
  for (const declaration of [
    { signature: whole },
    ...presetNames.map((preset) => ({ preset, ...needsOf(preset) })),
  ]) {
    const { signature } = declared(declaration).rule;
    assert.ok(signature.kind !== 'function');
    const secret = `whsec_${Buffer.alloc(32).toString('base64')}`;
    const isHex = signature.kind === 'hmac' && signature.key === 'hex';
    const { kind } = prepareKeys(signature, [isHex ? '00ff' : secret], primitives);
    assert.equal(kind, 'signed' in signature ? 'signed' : signature.kind);
  }
});
