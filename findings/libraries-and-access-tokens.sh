#!/usr/bin/env bash
# Access tokens of the profile of RFC 9068 (`typ: at+jwt`), signed with Ed25519, ES256 and RS256, before libraries that verify JWTs.
#
# Guess: a library that verifies JWTs verifies an access token of RFC 9068, whose `typ` that RFC requires, and knows EdDSA (RFC 8037, 2017).
# Seen: hono 4.13.19 refuses each header whose `typ` is there and is not `JWT`; jsonwebtoken 9.0.3 knows no Ed25519 key. jose 6.2.17,
# fast-jwt 6.3.6 and aws-jwt-verify 5.2.1 verify all of them.
#
# Needs node 22 or newer, npm and a registry. Exits with 1 if the output is no longer the one below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund jose@6.2.17 jsonwebtoken@9.0.3 hono@4.13.19 fast-jwt@6.3.6 aws-jwt-verify@5.2.1
cat >look.mjs <<'JS'
import { JwtVerifier } from 'aws-jwt-verify';
import { createVerifier } from 'fast-jwt';
import { verify } from 'hono/jwt';
import { exportJWK, exportSPKI, generateKeyPair, jwtVerify, SignJWT } from 'jose';
import jsonwebtoken from 'jsonwebtoken';

const name = 'https://api.shop.example';
for (const typ of ['at+jwt', 'JWT']) {
  for (const alg of ['EdDSA', 'ES256', 'RS256']) {
    const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
    const keys = [{ ...(await exportJWK(publicKey)), kid: 'k', alg, use: 'sig' }];
    const pem = await exportSPKI(publicKey);
    const token = await new SignJWT({ iss: name, aud: name, sub: 'usr_1' })
      .setProtectedHeader({ alg, kid: 'k', typ })
      .setIssuedAt()
      .setExpirationTime('5m')
      .sign(privateKey);
    const libraries = {
      jose: () => jwtVerify(token, publicKey, { issuer: name, audience: name, typ }),
      'fast-jwt': async () => createVerifier({ key: pem, algorithms: [alg] })(token),
      'aws-jwt-verify': async () => {
        const verifier = JwtVerifier.create({ issuer: name, audience: name, jwksUri: `${name}/jwks` });
        verifier.cacheJwks({ keys });
        return verifier.verifySync(token);
      },
      jsonwebtoken: async () => jsonwebtoken.verify(token, pem, { algorithms: [alg] }),
      hono: () => verify(token, pem, { alg }),
    };
    const refusing = [];
    for (const [library, verifies] of Object.entries(libraries)) {
      await verifies().catch(() => refusing.push(library));
    }
    console.log(`${typ}, ${alg}: refused by ${refusing.join(' and ') || 'none'}`);
  }
}
JS
node look.mjs >seen
cat seen
cat >expected <<'TEXT'
at+jwt, EdDSA: refused by jsonwebtoken and hono
at+jwt, ES256: refused by hono
at+jwt, RS256: refused by hono
JWT, EdDSA: refused by jsonwebtoken
JWT, ES256: refused by none
JWT, RS256: refused by none
TEXT
diff expected seen
