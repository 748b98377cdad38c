/**
 * The keys that sign access tokens, shared by all processes on one store (rotating-keys.ts). A key signs from `signsFrom` until that
 * of the next one, and verifies until every token that it signed has expired; then it is removed. Exactly one key signs.
 */
import { exportJWK, generateKeyPair, importJWK, type JWK } from 'jose';
import { preferredMediaType } from '../../http/syntax/accept.ts';
import { named } from '../../kernel/documentation.ts';
import type { Operation, Proposal, Resource, Standing } from '../../kernel/resource.ts';
import { contentTag } from '../../resources/program/document.ts';
import type { Services } from '../../store/capabilities.ts';
import { accountsTag } from '../account-schemas.ts';
import { signingKeysTable } from '../account-tables.ts';
import type { Audit, AuditFact } from '../audit.ts';
import { openRotatingKeys, type Ring } from './rotating-keys.ts';

export type SigningKeys = {
  /** The same on all processes: `urn:comity:...`. */
  name(): string;
  current(): SigningKey;
  /** Finds a key whose tokens may still be valid; reads the store for an unknown one. */
  find(kid: string): Promise<SigningKey | undefined>;
  /** The public keys, as in `/.well-known/jwks.json`. */
  published(): readonly JWK[];
  /** Seconds for which clients may cache them: less than a key is published before it signs. */
  readonly publishedSeconds: number;
  /** Creates and removes the keys that are due, as the timer does. */
  look(): Promise<void>;
  /** Stops following the row; resolves when the current read has ended. */
  close(): Promise<void>;
};

type SigningRing = Ring<StoredKey> & {
  /** The issuer name of this store's tokens if no public URL is configured. */
  readonly name: string;
};

/** Kept beyond the expiry of its last token, for processes whose clocks differ. */
const graceMs = 60_000;
/** Pause between two reads for unknown key ids. */
const unknownLookMs = 1000;

/** Loads the ring, or creates the first key. @throws StoreUnavailable */
export async function createSigningKeys(
  services: Services,
  audit: Pick<Audit, 'entry'>,
): Promise<SigningKeys> {
  const { clock, newId } = services;
  const { signingAlgorithm, accessTokenSeconds } = services.settings;
  const rotating = await openRotatingKeys<SigningRing, StoredKey, SigningKey>(services, {
    table: signingKeysTable,
    what: 'following signing keys',
    keptMs: keptMs(accessTokenSeconds),
    algorithm: signingAlgorithm,
    newRing: { name: `urn:comity:${newId()}`, keys: [] },
    create: (signsFrom) => makeSigningKey(signingAlgorithm, newId(), signsFrom),
    load: importSigningKey,
    auditRotation: (key) => audit.entry(rotationFact(key)),
  });
  const known = (kid: string) => rotating.keys.find((key) => key.kid === kid);
  return {
    publishedSeconds: rotating.publishedSeconds,
    name: () => rotating.ring.name,
    current() {
      const key = signingAt(rotating.keys, clock());
      if (key === undefined) throw new Error('the ring of signing keys is empty');
      return key;
    },
    async find(kid) {
      const key = known(kid);
      // Another process may have created the key just now; invented key ids must not cost a read each.
      if (key !== undefined || clock() - rotating.readAt < unknownLookMs) return key;
      await rotating.look();
      return known(kid);
    },
    published: () => rotating.keys.map((key) => key.published),
    look: () => rotating.look(),
    close: () => rotating.close(),
  };
}

/** Milliseconds for which a key stays after the next one began to sign. */
export function keptMs(accessTokenSeconds: number): number {
  return accessTokenSeconds * 1000 + graceMs;
}

/** Returns the last key whose `signsFrom` has passed, or else the first. */
export function signingAt<K extends Pick<StoredKey, 'signsFrom'>>(
  keys: readonly K[],
  now: number,
): K | undefined {
  return keys.findLast((key) => key.signsFrom <= now) ?? keys[0];
}

function rotationFact({ kid, algorithm, signsFrom }: StoredKey): AuditFact {
  const detail = { algorithm, signsFrom: new Date(signsFrom).toISOString() };
  return { type: 'signing_key.rotated', actor: null, subject: kid, address: null, detail };
}

type SigningAlgorithm = 'EdDSA' | 'ES256' | 'RS256';

export type StoredKey = {
  readonly kid: string;
  readonly algorithm: SigningAlgorithm;
  /** Milliseconds since the epoch; the key signs from then until the next one does. */
  readonly signsFrom: number;
  readonly publicJwk: JWK;
  readonly privateJwk: JWK;
};

export type SigningKey = Pick<StoredKey, 'kid' | 'algorithm' | 'signsFrom'> & {
  readonly publicKey: CryptoKey;
  readonly privateKey: CryptoKey;
  /** Entry of the JWK set (RFC 7517 §4), without private members. */
  readonly published: JWK;
};

/**
 * Generates a key pair (RFC 7518 §3, RFC 8037). The private key is stored, because every process signs with it.
 * @param kid unique
 * @param signsFrom milliseconds since the epoch
 */
export async function makeSigningKey(
  algorithm: SigningAlgorithm,
  kid: string,
  signsFrom: number,
): Promise<StoredKey> {
  const { publicKey, privateKey } = await generateKeyPair(algorithm, { extractable: true });
  return {
    kid,
    algorithm,
    signsFrom,
    publicJwk: await exportJWK(publicKey),
    privateJwk: await exportJWK(privateKey),
  };
}

export async function importSigningKey(stored: StoredKey): Promise<SigningKey> {
  const { kid, algorithm, signsFrom, publicJwk, privateJwk } = stored;
  const [publicKey, privateKey] = await Promise.all([
    importJWK(publicJwk, algorithm),
    importJWK(privateJwk, algorithm),
  ]);
  if (publicKey instanceof Uint8Array || privateKey instanceof Uint8Array) {
    throw new Error('a signing key must be a key pair, not a shared secret');
  }
  const published = { ...publicMembers(publicJwk), kid, alg: algorithm, use: 'sig' };
  return { kid, algorithm, signsFrom, publicKey, privateKey, published };
}

/** Copies members by name, so that no other member of a stored key is published. */
function publicMembers({ kty, crv, x, y, n, e }: JWK): JWK {
  return {
    ...(kty === undefined ? {} : { kty }),
    ...(crv === undefined ? {} : { crv }),
    ...(x === undefined ? {} : { x }),
    ...(y === undefined ? {} : { y }),
    ...(n === undefined ? {} : { n }),
    ...(e === undefined ? {} : { e }),
  };
}

// GET /.well-known/jwks.json (RFC 7517 §5, RFC 8615): the public keys that our signatures are checked with, for anyone. A copy may be
// kept for less time than a key is published before it signs, so no one meets a signature whose key could not be known.

type PublishedKeys = {
  /** Public keys, as entries of the set. */
  published(): readonly object[];
  /** How long a copy may be kept. */
  readonly publishedSeconds: number;
};

/** Many clients ask for the second, and the first is JSON too. */
const offers = ['application/jwk-set+json', 'application/json'] as const;
const standing: Standing = { exists: true, visible: true, permitted: true };

const jwkSet = {
  schema: named('JwkSet', {
    description:
      'Public keys of access tokens and deliveries: the current ones, the previous ones and the next ones.',
    type: 'object',
    properties: {
      keys: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            kty: { type: 'string' },
            kid: { type: 'string' },
            alg: { type: 'string' },
            use: { const: 'sig' },
            crv: {
              type: 'string',
              description: 'Of elliptic curves, as `x` and `y`; RSA keys have `n` and `e`.',
            },
            x: { type: 'string' },
          },
          required: ['kty', 'kid', 'alg', 'use'],
        },
      },
    },
    required: ['keys'],
  }),
  example: {
    keys: [
      {
        kty: 'OKP',
        crv: 'Ed25519',
        x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
        kid: '01k1jx7v2mh5s8b4c9d0e6f3ga',
        alg: 'EdDSA',
        use: 'sig',
      },
    ],
  },
};

type Set_ = Proposal & { readonly content: string; readonly tag: string };

export function jwksResource(rings: readonly PublishedKeys[]): Resource {
  const cacheControl = `public, max-age=${Math.min(...rings.map((ring) => ring.publishedSeconds))}`;
  const operation: Operation<Standing, never, Set_> = {
    documentation: {
      id: 'readJwkSet',
      summary: 'Read the public keys that verify access tokens and deliveries',
      gives: { representation: Object.fromEntries(offers.map((type) => [type, jwkSet])) },
    },
    permission: () => 'granted',
    standing: () => standing,
    propose: () => {
      const content = JSON.stringify({ keys: rings.flatMap((ring) => ring.published()) });
      return { problem: null, content, tag: contentTag(content) };
    },
    validators: (_ask, _standing, proposal) => ({
      tag: proposal?.tag ?? null,
      modifiedAt: null,
      cacheControl,
    }),
    represent: (ask, _standing, proposal) => ({
      content: proposal?.content ?? '',
      mediaType: preferredMediaType(ask.request.fields.accept, offers) ?? offers[0],
      validators: { tag: proposal?.tag ?? null, modifiedAt: null },
      cacheControl,
    }),
  };
  return {
    pattern: '/.well-known/jwks.json',
    documentation: { name: 'JwkSet', tag: accountsTag },
    operations: new Map([['GET', operation as Operation]]),
    constantFields: [],
    offers,
    unlimited: true,
  };
}
