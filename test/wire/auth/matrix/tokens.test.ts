/** Tokens that must not be taken for good (§5.2): forged ones of ours, and wrong ones of a trusted issuer. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose';
import { readKeyFile, unseal } from '../../../../src/store/secrets/secret-key-ring.ts';
import {
  type Answer,
  base,
  bearer,
  type Client,
  login,
  openClient,
  register,
  type Tokens,
} from '../../../harness/account-client.ts';
import { type ServerProcess, spawnServer } from '../../../harness/server-process.ts';
import { temporaryFolder } from '../../../harness/temporary-folder.ts';
import { audience, startIssuer } from '../../../harness/token-issuer.ts';
import { forgedInside, forgedOutside, readToken } from './forged-tokens.ts';

const config = fileURLToPath(new URL('../fixtures/matrix.config.ts', import.meta.url));
const email = 'ada@shop.example';
const password = 'correct horse battery staple';

const issuer = await startIssuer({ after }, { alg: 'ES256' });
let folder: string;
let program: ServerProcess;
let client: Client;
let tokens: Tokens;

before(async () => {
  folder = temporaryFolder();
  const env = { TEST_ISSUER: issuer.url, COMITY_RATE_LIMIT_READS: '0' };
  program = await spawnServer({ config, folder, env });
  client = openClient(program.port);
  await register(client, email, password);
  tokens = await login(client, email, password);
});

after(async () => {
  client?.close();
  await program?.stop();
});

const ask = (headers: Readonly<Record<string, string>>, path = `${base}/auth/me`) =>
  client.ask('GET', path, { headers });

function assertRefused(answer: Answer, status: number, code: string, label: string): void {
  assert.equal(answer.status, status, `${label}: ${answer.status} ${answer.body}`);
  assert.equal(answer.json().code, code, label);
}

describe('an access token of ours', () => {
  it('is refused when it was unsigned, signed otherwise, or altered', async (context) => {
    const sound = readToken(tokens.token);
    assert.equal((await ask(bearer(sound.token))).status, 200);
    const [published] = (await client.ask('GET', '/.well-known/jwks.json')).json().keys as JWK[];
    assert.ok(published !== undefined);
    assert.equal('d' in published, false);
    const forged = await forgedOutside(sound, published);
    for (const [what, token] of forged) assertRefused(await ask(bearer(token)), 401, 'invalid_token', what);
    assert.ok(forged.length > 50);
    context.diagnostic(`${forged.length} forged tokens`);
    assert.equal((await ask(bearer(sound.token))).status, 200);
  });

  it('is refused when it is signed rightly and says the wrong thing', async (context) => {
    if (process.env.COMITY_TEST_STORE === 'postgres') return context.skip('the key is read from the file');
    const other = await register(client, 'other@shop.example', password);
    const otherSession = String(readToken(other.token).claims.sid);
    const sound = readToken(tokens.token);
    const privateJwk = privateKeyIn(folder, sound.header.kid);
    const { alike, forged } = await forgedInside(sound, privateJwk, otherSession);
    assert.equal((await ask(bearer(alike))).status, 200, 'the key that was read is the one that signs');
    for (const [what, token] of forged) assertRefused(await ask(bearer(token)), 401, 'invalid_token', what);
    context.diagnostic(`${forged.length} forged tokens`);
  });
});

/** Of the key that signs: the one of the ring whose name the token bears. */
function privateKeyIn(data: string, kid: unknown): JWK {
  const database = new DatabaseSync(join(data, 'comity.db'), { readOnly: true });
  try {
    const row = database.prepare('SELECT id, doc FROM signing_keys').get() as { id: string; doc: string };
    const [secretKey] = readKeyFile(join(data, 'secret.key'));
    assert.ok(secretKey !== undefined);
    const doc = unseal(secretKey, { table: 'signing_keys', id: row.id }, row.doc);
    const { keys } = JSON.parse(doc) as { keys: { kid: string; privateJwk: JWK }[] };
    const found = keys.find((each) => each.kid === kid);
    assert.ok(found !== undefined);
    return found.privateJwk;
  } finally {
    database.close();
  }
}

describe('a token of a trusted issuer', () => {
  const claims = (more: Readonly<Record<string, unknown>> = {}): JWTPayload => {
    const now = Math.floor(Date.now() / 1000);
    return {
      iss: issuer.url,
      aud: audience,
      sub: 'ada',
      scope: 'read write',
      iat: now,
      exp: now + 600,
      ...more,
    };
  };

  it('is refused for another audience, before its time, after it, or by another key', async () => {
    assert.equal((await ask(bearer(await issuer.sign(claims())))).status, 200);
    const now = Math.floor(Date.now() / 1000);
    const stranger = await generateKeyPair('ES256');
    const rsa = await generateKeyPair('RS256');
    const wrong = {
      'another audience': await issuer.sign(claims({ aud: 'another' })),
      'no audience': await issuer.sign(claims({ aud: undefined })),
      'an end beyond the skew': await issuer.sign(claims({ exp: now - 400 })),
      'no end': await issuer.sign(claims({ exp: undefined })),
      'a beginning in the future': await issuer.sign(claims({ nbf: now + 400 })),
      'an issuer nobody trusts': await issuer.sign(claims({ iss: 'https://evil.example' })),
      'no subject': await issuer.sign(claims({ sub: undefined })),
      'a kid that is not published': await issuer.sign(claims(), { kid: 'none' }),
      'another key': await new SignJWT(claims())
        .setProtectedHeader({ alg: 'ES256', kid: 'key-1' })
        .sign(stranger.privateKey),
      'an algorithm that is not allowed': await new SignJWT(claims())
        .setProtectedHeader({ alg: 'RS256', kid: 'key-1' })
        .sign(rsa.privateKey),
      'alg none': `${encode({ alg: 'none', kid: 'key-1' })}.${encode(claims())}.`,
      HS256: await new SignJWT(claims())
        .setProtectedHeader({ alg: 'HS256', kid: 'key-1' })
        .sign(Buffer.from('a secret that everybody could know')),
    };
    for (const [what, token] of Object.entries(wrong)) {
      assertRefused(await ask(bearer(token)), 401, 'invalid_token', what);
    }
  });

  it('makes nobody an administrator, whatever it claims', async () => {
    const token = await issuer.sign(
      claims({ roles: ['administrator', 'admin'], scope: 'read write admin', admin: true }),
    );
    assert.equal((await ask(bearer(token))).status, 200);
    for (const path of ['users', 'audit']) {
      assertRefused(await ask(bearer(token), `${base}/${path}`), 403, 'forbidden', path);
    }
  });
});

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
