/** Access tokens that somebody else made, or made otherwise than we do: each is refused, and always in the same way. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  exportJWK,
  exportSPKI,
  FlattenedSign,
  GeneralSign,
  generateKeyPair,
  type JWTPayload,
  SignJWT,
} from 'jose';
import type { User } from '../../../src/accounts/account-tables.ts';
import type { SigningKey } from '../../../src/accounts/tokens/signing-keys.ts';
import type { Ending } from '../../harness/listening.ts';
import { openEmbedded } from '../../harness/stores.ts';
import {
  good,
  minuteMs,
  origin,
  type Process,
  putUser,
  refused,
  start,
  startProcess,
} from '../sessions/fixture.ts';

type Given = {
  readonly process: Process;
  readonly key: SigningKey;
  readonly user: User;
  readonly claims: JWTPayload;
  /** A good token, to be broken. */
  readonly token: string;
};

async function given(context: Ending): Promise<Given> {
  const store = await openEmbedded(context);
  const user = await putUser(store, { id: 'usr_01jg0000000000000000000000' });
  const process = await startProcess(store);
  context.after(() => process.keys.close());
  const { session, content } = await process.login(user);
  const iat = start / 1000;
  const claims = {
    iss: origin,
    aud: origin,
    sub: user.id,
    sid: session,
    scope: 'read write',
    iat,
    exp: iat + 900,
    jti: 'x',
  };
  return { process, key: process.keys.current(), user, claims, token: content.token };
}

const header = ({ kid }: SigningKey) => ({ alg: 'EdDSA', kid, typ: 'at+jwt' });

function base64url(value: unknown): string {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
}

/** Signs exactly these texts with our own key. */
async function signTexts(key: SigningKey, headerText: string, claimsText: string): Promise<string> {
  const input = `${base64url(headerText)}.${base64url(claimsText)}`;
  const signature = await crypto.subtle.sign('Ed25519', key.privateKey, Buffer.from(input));
  return `${input}.${Buffer.from(signature).toString('base64url')}`;
}

test('accepts a token that our key signed with the claims that we sign, which proves the forgeries near misses', async (context) => {
  const { process, key, claims } = await given(context);
  const made = await new SignJWT(claims).setProtectedHeader(header(key)).sign(key.privateKey);
  await good(process.sessions.verifyToken(made));
  await good(
    process.sessions.verifyToken(await signTexts(key, JSON.stringify(header(key)), JSON.stringify(claims))),
  );
});

test('refuses tokens without a signature, whatever they call that', async (context) => {
  const { process, key, claims, token } = await given(context);
  const signature = token.split('.')[2];
  for (const alg of ['none', 'None', 'NONE', 'nOnE', '']) {
    const input = `${base64url({ ...header(key), alg })}.${base64url(claims)}`;
    await refused(process.sessions.verifyToken(`${input}.`));
    await refused(process.sessions.verifyToken(`${input}.${signature}`));
    await refused(process.sessions.verifyToken(input));
  }
});

test('refuses HS256 with any form of the public key as the secret', async (context) => {
  const { process, key, claims } = await given(context);
  const jwk = await exportJWK(key.publicKey);
  const secrets = [
    await exportSPKI(key.publicKey),
    Buffer.from(await crypto.subtle.exportKey('spki', key.publicKey)),
    Buffer.from(jwk.x ?? '', 'base64url'),
    jwk.x ?? '',
    JSON.stringify(jwk),
    JSON.stringify(key.published),
  ];
  for (const secret of secrets) {
    const forged = await new SignJWT(claims)
      .setProtectedHeader({ ...header(key), alg: 'HS256' })
      .sign(Buffer.from(secret));
    await refused(process.sessions.verifyToken(forged));
  }
});

test('refuses another algorithm than that of the key, also with a good signature of its own', async (context) => {
  const { process, key, claims } = await given(context);
  for (const alg of ['ES256', 'RS256', 'PS256']) {
    const { privateKey } = await generateKeyPair(alg);
    const forged = await new SignJWT(claims).setProtectedHeader({ ...header(key), alg }).sign(privateKey);
    await refused(process.sessions.verifyToken(forged));
  }
  await refused(
    process.sessions.verifyToken(
      await signTexts(key, JSON.stringify({ ...header(key), alg: 'RS256' }), JSON.stringify(claims)),
    ),
  );
});

test('refuses a foreign key under our kid, under its own and under none, and follows no reference to it', async (context) => {
  const { process, key, claims } = await given(context);
  const { privateKey, publicKey } = await generateKeyPair('EdDSA', { extractable: true });
  const jwk = await exportJWK(publicKey);
  const headers = [
    header(key),
    { ...header(key), kid: 'foreign' },
    { alg: 'EdDSA', typ: 'at+jwt' },
    { ...header(key), kid: '' },
    { ...header(key), kid: '../ring' },
    { ...header(key), jwk },
    { ...header(key), jku: 'http://127.0.0.1:1/jwks.json' },
    { ...header(key), x5u: 'http://127.0.0.1:1/chain.pem' },
    { ...header(key), x5c: ['AA=='] },
    { alg: 'EdDSA', typ: 'at+jwt', jwk },
  ];
  for (const each of headers) {
    const forged = await new SignJWT(claims).setProtectedHeader(each as { alg: string }).sign(privateKey);
    await refused(process.sessions.verifyToken(forged));
  }
});

test('refuses another issuer, audience or type, extensions that are critical, and missing claims', async (context) => {
  const { process, key, claims } = await given(context);
  const sign = (changed: JWTPayload, more: object = {}) =>
    new SignJWT({ ...claims, ...changed })
      .setProtectedHeader({ ...header(key), ...more })
      .sign(key.privateKey);
  const without = (name: string) => {
    const { [name]: _left, ...rest } = claims;
    return new SignJWT(rest).setProtectedHeader(header(key)).sign(key.privateKey);
  };
  const forged = [
    sign({ iss: 'https://evil.example' }),
    sign({ iss: `${origin}/` }),
    sign({ aud: 'https://evil.example' }),
    sign({ aud: [] }),
    sign({}, { typ: 'dpop+jwt' }),
    sign({}, { typ: 'jwt' }),
    sign({}, { typ: 'logout+jwt' }),
    sign({}, { typ: undefined }),
    ...['iss', 'aud', 'sub', 'sid', 'iat', 'exp', 'jti'].map(without),
    sign({ sub: 'usr_01jg0000000000000000000009' }),
    sign({ sid: 'ses_01jg0000000000000000000009' }),
    sign({ sid: 7 as unknown as string }),
    sign({ exp: '9999999999' as unknown as number }),
    signTexts(key, JSON.stringify({ ...header(key), crit: ['exp'] }), JSON.stringify(claims)),
    signTexts(key, JSON.stringify({ ...header(key), crit: ['b64'], b64: false }), JSON.stringify(claims)),
  ];
  for (const token of forged) await refused(process.sessions.verifyToken(await token));
});

test("refuses a token of one account's session in the name of another", async (context) => {
  const { process, key, claims } = await given(context);
  await putUser(process.store, { id: 'usr_01jg0000000000000000000001', roles: ['administrator'] });
  const forged = await new SignJWT({ ...claims, sub: 'usr_01jg0000000000000000000001' })
    .setProtectedHeader(header(key))
    .sign(key.privateKey);
  await refused(process.sessions.verifyToken(forged));
});

test('ends a token at the moment of exp without grace, and allows for 30 seconds between clocks at its beginning', async (context) => {
  const { process, key, claims, token } = await given(context);
  const { clock, sessions } = process;
  clock.now = start + 15 * minuteMs - 1;
  await good(sessions.verifyToken(token));
  clock.now = start + 15 * minuteMs;
  await refused(sessions.verifyToken(token));
  clock.now = start - 30_000;
  await good(sessions.verifyToken(token));
  clock.now = start - 31_000;
  await refused(sessions.verifyToken(token));
  clock.now = start;
  const later = await new SignJWT({ ...claims, nbf: start / 1000 + 60 })
    .setProtectedHeader(header(key))
    .sign(key.privateKey);
  await refused(sessions.verifyToken(later));
  clock.now = start + 60_000;
  await good(sessions.verifyToken(later));
});

test('refuses a token that is too long before it is looked at', async (context) => {
  const { process, key, claims } = await given(context);
  const padded = (length: number) =>
    new SignJWT({ ...claims, pad: 'x'.repeat(length) }).setProtectedHeader(header(key)).sign(key.privateKey);
  const overhead = (await padded(0)).length;
  let length = Math.floor(((8192 - overhead) * 3) / 4);
  let longest = await padded(length);
  while ((await padded(length + 1)).length <= 8192) longest = await padded(++length);
  await good(process.sessions.verifyToken(longest));
  await refused(process.sessions.verifyToken(await padded(length + 1)));
  await refused(process.sessions.verifyToken('.'.repeat(10_000_000)));
  await refused(process.sessions.verifyToken('a'.repeat(10_000_000)));
});

test('refuses bad base64, cut signatures and every second spelling of a good token', async (context) => {
  const { process, token } = await given(context);
  const [head = '', body = '', signature = ''] = token.split('.');
  const last = signature.slice(-1);
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const spellings = [
    ...[...alphabet]
      .filter((letter) => letter !== last)
      .map((letter) => `${head}.${body}.${signature.slice(0, -1)}${letter}`),
    `${head}.${body}.${signature}==`,
    `${head}.${body}.${signature}=`,
    `${head}=.${body}.${signature}`,
    `${head}.${body}.${signature.slice(0, -1)}`,
    `${head}.${body}.${signature.slice(0, 40)}`,
    `${head}.${body}.`,
    `${head}.${body}`,
    `${head}..${signature}`,
    `.${body}.${signature}`,
    `..`,
    '',
    `${head}.${body}.${signature}.`,
    `${head}.${body}.${signature}.${signature}`,
    `${head}.${body}.${signature}\n`,
    ` ${token}`,
    `${head}.${body}.${signature.slice(0, 10)} ${signature.slice(10)}`,
    `${head}.${body}.${signature.slice(0, 10)}+${signature.slice(11)}`,
    `${head}.${body}.${signature.slice(0, 10)}\u0000${signature.slice(11)}`,
    `${head}.${body}.${signature.slice(0, 10)}ä${signature.slice(11)}`,
    `${body}.${head}.${signature}`,
    `Bearer ${token}`,
  ];
  for (const spelling of spellings) await refused(process.sessions.verifyToken(spelling));
  await good(process.sessions.verifyToken(token));
});

test('refuses a token with any one character changed', async (context) => {
  const { process, token } = await given(context);
  for (const at of token.split('').keys()) {
    const other = token[at] === 'A' ? 'B' : 'A';
    await refused(process.sessions.verifyToken(`${token.slice(0, at)}${other}${token.slice(at + 1)}`));
  }
  await good(process.sessions.verifyToken(token));
});

test('refuses claims that are given twice, and JSON that is written otherwise than we write it', async (context) => {
  const { process, key, claims } = await given(context);
  const headerText = JSON.stringify(header(key));
  const claimsText = JSON.stringify(claims);
  const texts: readonly (readonly [string, string])[] = [
    [headerText, claimsText.replace('{', '{"sub":"usr_other",')],
    [headerText, claimsText.replace('}', `,"sub":"${claims.sub}"}`)],
    [headerText.replace('{', '{"alg":"none",'), claimsText],
    [headerText, ` ${claimsText}`],
    [headerText, claimsText.replace('"sub"', '"s\\u0075b"')],
    [headerText, `\ufeff${claimsText}`],
    [headerText, `[${claimsText}]`],
    [headerText, 'null'],
    [headerText, claimsText.slice(0, -1)],
    ['"EdDSA"', claimsText],
  ];
  for (const [head, body] of texts)
    await refused(process.sessions.verifyToken(await signTexts(key, head, body)));
});

test('refuses the other serialisations of JWS', async (context) => {
  const { process, key, claims } = await given(context);
  const payload = Buffer.from(JSON.stringify(claims));
  const flattened = await new FlattenedSign(payload).setProtectedHeader(header(key)).sign(key.privateKey);
  const general = await new GeneralSign(payload)
    .addSignature(key.privateKey)
    .setProtectedHeader(header(key))
    .sign();
  await refused(process.sessions.verifyToken(JSON.stringify(flattened)));
  await refused(process.sessions.verifyToken(JSON.stringify(general)));
  await refused(process.sessions.verifyToken(base64url(flattened)));
  const { protected: head, signature } = flattened;
  await refused(process.sessions.verifyToken(`${head}..${signature}`));
});

test('says in its header and claims what RFC 9068 asks for', async (context) => {
  const { key, user, claims, token } = await given(context);
  const [head = '', body = ''] = token.split('.');
  assert.deepEqual(JSON.parse(Buffer.from(head, 'base64url').toString()), header(key));
  const { jti, ...rest } = JSON.parse(Buffer.from(body, 'base64url').toString());
  assert.match(jti, /^[\w-]{22}$/);
  const { jti: _ours, ...expected } = claims;
  assert.deepEqual(rest, expected);
  assert.equal(rest.sub, user.id);
});
