/** An issuer of the outside, as a real HTTP server with keys that the test turns, and a log of what it was asked for. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after } from 'node:test';
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose';
import type { Ending } from './listening.ts';

export const audience = 'https://api.shop.example';

type Pair = { readonly kid: string; readonly alg: string; readonly privateKey: CryptoKey; readonly jwk: JWK };

export type Issuer = {
  readonly url: string;
  /** Paths that were asked for. */
  readonly asked: string[];
  /** Published, newest last; the newest signs. */
  keys: Pair[];
  /** Answers in its place; undefined: it answers well. */
  answer: ((path: string, response: ServerResponse) => void) | undefined;
  /** Adds a key pair. */
  turn(alg?: string): Promise<Pair>;
  /** A token for `audience`, with these claims and this header besides. */
  sign(claims?: JWTPayload, header?: object, pair?: Pair): Promise<string>;
  /** Hangs up on whoever waits, and listens no more. */
  close(): Promise<void>;
  /** Listens again, at the same address. */
  open(): Promise<void>;
};

export type IssuerOptions = {
  /** Seconds since the epoch. */
  readonly now?: () => number;
  /** Of the first key. */
  readonly alg?: string;
};

export async function startIssuer(
  context: Ending = { after },
  { now = () => Math.floor(Date.now() / 1000), alg: first }: IssuerOptions = {},
): Promise<Issuer> {
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    issuer.asked.push(path);
    if (issuer.answer !== undefined) return issuer.answer(path, response);
    if (path === '/.well-known/openid-configuration') {
      return void response.end(JSON.stringify({ issuer: issuer.url, jwks_uri: `${issuer.url}/keys` }));
    }
    response.end(JSON.stringify({ keys: issuer.keys.map(({ jwk }) => jwk) }));
  });
  let port = 0;
  const open = () =>
    new Promise<void>((resolve) => {
      server.listen(port, '127.0.0.1', () => {
        port = (server.address() as AddressInfo).port;
        resolve();
      });
    });
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  await open();
  context.after(close);
  const issuer: Issuer = {
    url: `http://127.0.0.1:${port}`,
    asked: [],
    keys: [],
    answer: undefined,
    async turn(alg = 'EdDSA') {
      const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
      const kid = `key-${issuer.keys.length + 1}`;
      const pair = { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } };
      issuer.keys.push(pair);
      return pair;
    },
    sign(claims = {}, header = {}, pair = issuer.keys.at(-1)) {
      if (pair === undefined) throw new Error('the issuer has no key');
      const iat = now();
      const standard = { iss: issuer.url, aud: audience, sub: 'ada', iat, exp: iat + 3600 };
      return new SignJWT({ ...standard, ...claims })
        .setProtectedHeader({ alg: pair.alg, kid: pair.kid, typ: 'at+jwt', ...header })
        .sign(pair.privateKey);
    },
    close,
    open,
  };
  await issuer.turn(first);
  return issuer;
}
