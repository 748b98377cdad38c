/** An issuer of tokens as companies run one: metadata, keys and tokens, over HTTP, signed by jose. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';

export const audience = 'comity-test';
const kid = 'issuer-key';
const algorithm = 'ES256';

export type Issuer = {
  readonly url: string;
  /** Signed with the published key unless the header names another kid; claims as given, none added. */
  sign(claims: JWTPayload, header?: Readonly<Record<string, string>>): Promise<string>;
  close(): Promise<void>;
};

export async function startIssuer(): Promise<Issuer> {
  const { publicKey, privateKey } = await generateKeyPair(algorithm);
  const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid, alg: algorithm, use: 'sig' }] };
  const server = createServer((request, response) => {
    const metadata = { issuer: url, jwks_uri: `${url}/jwks.json` };
    const documents = new Map<string, unknown>([
      ['/.well-known/openid-configuration', metadata],
      ['/.well-known/oauth-authorization-server', metadata],
      ['/jwks.json', jwks],
    ]);
    const found = documents.get(request.url ?? '');
    response.writeHead(found === undefined ? 404 : 200, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(found ?? {}));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    sign: (claims, header = {}) =>
      new SignJWT(claims).setProtectedHeader({ alg: algorithm, kid, ...header }).sign(privateKey),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
