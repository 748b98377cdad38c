/**
 * Access tokens that somebody could try: unsigned, signed with what is public, with a key of the forger's, or altered; and, with the
 * program's own private key taken from its store, tokens that are signed rightly and say the wrong thing. None may be accepted.
 */
import { createHmac, createPublicKey, type JsonWebKeyInput } from 'node:crypto';
import { exportJWK, generateKeyPair, importJWK, type JWK, SignJWT } from 'jose';

export type Forged = readonly [what: string, token: string];

type Members = Readonly<Record<string, unknown>>;

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const encodeText = (text: string) => Buffer.from(text).toString('base64url');
const decode = (part: string | undefined) =>
  JSON.parse(Buffer.from(part ?? '', 'base64url').toString()) as Members;

export type Sound = {
  /** One that is good now. */
  readonly token: string;
  readonly header: Members;
  readonly claims: Members;
};

export function readToken(token: string): Sound {
  const [header, claims] = token.split('.');
  return { token, header: decode(header), claims: decode(claims) };
}

/** What can be made of a good token and of the published keys. */
export async function forgedOutside(sound: Sound, published: JWK): Promise<readonly Forged[]> {
  return [
    ...unsigned(sound),
    ...signedWithWhatIsPublic(sound, published),
    ...(await signedWithAnotherKey(sound)),
    ...altered(sound),
    ...misspelt(sound),
  ];
}

function unsigned({ token, header }: Sound): readonly Forged[] {
  const [head = '', body = '', signature = ''] = token.split('.');
  const forged: Forged[] = [
    ['no signature part', `${head}.${body}`],
    ['an empty signature', `${head}.${body}.`],
  ];
  for (const alg of ['none', 'None', 'NONE', 'nOnE', '']) {
    for (const end of ['', signature]) {
      const what = `alg ${alg} with ${end === '' ? 'no' : 'the old'} signature`;
      forged.push([what, `${encode({ ...header, alg })}.${body}.${end}`]);
    }
  }
  return forged;
}

/** A verifier that believes the algorithm of the token takes its public key for the shared secret. */
function signedWithWhatIsPublic({ token, header }: Sound, published: JWK): readonly Forged[] {
  const body = token.split('.')[1] ?? '';
  const publicKey = createPublicKey({ key: published, format: 'jwk' } as JsonWebKeyInput);
  const secrets = {
    'the x of the JWK': Buffer.from(String(published.x ?? published.n), 'base64url'),
    'the text of x': Buffer.from(String(published.x ?? published.n)),
    'the JWK': Buffer.from(JSON.stringify(published)),
    'the DER': publicKey.export({ type: 'spki', format: 'der' }),
    'the PEM': Buffer.from(publicKey.export({ type: 'spki', format: 'pem' })),
    nothing: Buffer.alloc(0),
  };
  const algorithms = [
    ['HS256', 'sha256'],
    ['HS512', 'sha512'],
  ] as const;
  return Object.entries(secrets).flatMap(([what, secret]) =>
    algorithms.map(([alg, digest]): Forged => {
      const text = `${encode({ ...header, alg })}.${body}`;
      const signature = createHmac(digest, secret).update(text).digest('base64url');
      return [`${alg} with ${what} as the secret`, `${text}.${signature}`];
    }),
  );
}

async function signedWithAnotherKey({ token, header, claims }: Sound): Promise<readonly Forged[]> {
  const [, body = '', signature = ''] = token.split('.');
  const own = await generateKeyPair('EdDSA', { extractable: true });
  const ownRsa = await generateKeyPair('RS256');
  const signed = (more: Members) =>
    new SignJWT(claims).setProtectedHeader({ ...header, ...more, alg: 'EdDSA' }).sign(own.privateKey);
  const rsa = new SignJWT(claims).setProtectedHeader({ ...header, alg: 'RS256' });
  const forged: Forged[] = [
    ['the kid of the program and another key', await signed({})],
    ['a key in the header', await signed({ jwk: await exportJWK(own.publicKey) })],
    ['a key set elsewhere', await signed({ jku: 'http://127.0.0.1:1/jwks.json' })],
    ['a certificate elsewhere', await signed({ x5u: 'http://127.0.0.1:1/key.pem' })],
    ['RS256 under the kid of the program', await rsa.sign(ownRsa.privateKey)],
  ];
  for (const kid of ['none', '', '../../../../dev/null', "' OR '1'='1", 7, null, ['a']]) {
    forged.push([`the kid ${JSON.stringify(kid)}`, `${encode({ ...header, kid })}.${body}.${signature}`]);
  }
  for (const alg of ['RS256', 'ES256', 'PS256', 'Ed448', 'A128KW']) {
    forged.push([`alg ${alg} over the old signature`, `${encode({ ...header, alg })}.${body}.${signature}`]);
  }
  return forged;
}

function altered({ token, header, claims }: Sound): readonly Forged[] {
  const [head = '', body = '', signature = ''] = token.split('.');
  const changes = [{ sub: 'administrator' }, { scope: 'admin' }, { exp: 9999999999 }, { sid: 'ses_other' }];
  const forged = changes.map(
    (more): Forged => [
      `altered: ${JSON.stringify(more)}`,
      `${head}.${encode({ ...claims, ...more })}.${signature}`,
    ],
  );
  const critical = { ...header, crit: ['b64'], b64: false };
  return [...forged, ['a critical extension', `${encode(critical)}.${body}.${signature}`]];
}

/** The same token in another spelling, and what is no token at all. */
function misspelt({ token, claims }: Sound): readonly Forged[] {
  const [head = '', body = '', signature = ''] = token.split('.');
  const general = { payload: body, signatures: [{ protected: head, signature }] };
  const standard = signature.replaceAll('-', '+').replaceAll('_', '/');
  const deep = '['.repeat(2000) + ']'.repeat(2000);
  return [
    ['a signature that was cut', token.slice(0, -1)],
    ['a signature with one character more', `${token}A`],
    ['padding', `${token}=`],
    ['stray bits at the end', token.slice(0, -1) + neighbour(token.at(-1) ?? 'A')],
    ['a part more', `${token}.${signature}`],
    ['two parts less', head],
    ['dots alone', '..'],
    ['the general JSON serialisation', JSON.stringify(general)],
    ['the flattened JSON serialisation', encode({ payload: body, protected: head, signature })],
    ['base64 that is not for URLs', `${head}.${body}.${standard}+/`],
    ['a header that is no JSON', `${encodeText('{')}.${body}.${signature}`],
    ['claims that are a list', `${head}.${encode([claims])}.${signature}`],
    ['claims nested deeply', `${head}.${encodeText(deep)}.${signature}`],
    ['the longest that is read', 'A'.repeat(8192)],
    ['one that is too long', 'A'.repeat(8193)],
    [
      'one with too much in its claims',
      `${head}.${encode({ ...claims, more: 'x'.repeat(9000) })}.${signature}`,
    ],
  ];
}

/** A character whose six bits begin alike and end otherwise: a lenient decoder does not see the difference. */
function neighbour(character: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return alphabet[alphabet.indexOf(character) ^ 1] ?? 'B';
}

/**
 * Signed by the program's own key, and wrong in what they say. `otherSession`: of another account.
 * @returns besides, as `alike`, one that says what the sound one says: it must be good, or the key is not the one that signs
 */
export async function forgedInside(
  { header, claims }: Sound,
  privateJwk: JWK,
  otherSession: string,
): Promise<{ readonly alike: string; readonly forged: readonly Forged[] }> {
  const alg = String(header.alg);
  const key = await importJWK(privateJwk, alg);
  const now = Math.floor(Date.now() / 1000);
  const sign = (moreClaims: Members, moreHeader: Members = {}) =>
    new SignJWT(without({ ...claims, ...moreClaims }))
      .setProtectedHeader(without({ ...header, alg, ...moreHeader }) as { alg: string })
      .sign(key);
  const wrong: readonly (readonly [what: string, claims: Members, header?: Members])[] = [
    ['the audience of somebody else', { aud: 'https://other.example' }],
    ['an audience among which we are not', { aud: ['https://one.example', 'https://two.example'] }],
    ['no audience', { aud: undefined }],
    ['another issuer', { iss: 'https://other.example' }],
    ['no issuer', { iss: undefined }],
    ['an end in the past', { exp: now - 1 }],
    ['an end long past', { iat: now - 7200, exp: now - 3600 }],
    ['no end', { exp: undefined }],
    ['an end that is a text', { exp: String(now + 600) }],
    ['a beginning in the future', { nbf: now + 600 }],
    ['an issue in the future', { iat: now + 600, exp: now + 1200 }],
    ['no subject', { sub: undefined }],
    ['another subject', { sub: 'usr_00000000000000000000000000' }],
    ['no session', { sid: undefined }],
    ['a session that never was', { sid: 'ses_00000000000000000000000000' }],
    ['the session of another account', { sid: otherSession }],
    ['the type of an ID token', {}, { typ: 'JWT' }],
    ['no type', {}, { typ: undefined }],
  ];
  const forged: Forged[] = [];
  for (const [what, moreClaims, moreHeader] of wrong) {
    forged.push([`signed rightly, with ${what}`, await sign(moreClaims, moreHeader)]);
  }
  return { alike: await sign({}), forged };
}

function without(members: Members): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}
