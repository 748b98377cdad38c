/**
 * WebAuthn Level 3 by `@simplewebauthn/server`: options for the browser, the verification of what it sends back (§7.1, §7.2 there), the
 * schemas of both, and the relying party, which is the domain of the passkeys and the origins of the pages that may use them.
 * Attestation by certificates is refused: Comity does not ask who made an authenticator, and the certificates of a client
 * could name addresses to fetch lists of revocations from.
 */
import { isIP } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import { Type } from 'typebox';
import { ConfigurationError } from '../../../config/inspection.ts';
import type { Settings } from '../../../config/settings.ts';
import { originOfUrl } from '../../../http/syntax/uri.ts';
import { named } from '../../../kernel/documentation.ts';
import { exampleChallenge } from '../../account-schemas.ts';
import type { User } from '../../account-tables.ts';
import type { Passkey, SecondFactor } from '../factor-row.ts';

/** EdDSA, ES256 and RS256 (RFC 9053), which all authenticators have one of. */
const algorithms = [-8, -7, -257];
/** A COSE key of RSA with 4096 bits has 526. */
const publicKeyBytesMax = 1024;

/**
 * Loaded with the first passkey: certificates, which the library could read as well, took a tenth of each start. In two turns of the event
 * loop, of 17 and 32 ms.
 */
async function library() {
  await import('@peculiar/asn1-x509');
  await setImmediate();
  return import('@simplewebauthn/server');
}

export type PasskeyOptions = Readonly<Record<string, unknown>>;

/** @param how.challenge in base64url */
export async function registrationOptions(
  party: RelyingParty,
  user: Pick<User, 'id' | 'email' | 'name'>,
  how: {
    readonly challenge: string;
    readonly passkeys: readonly Passkey[];
    readonly timeoutMs: number;
    /** The passkey logs in alone. */
    readonly isAlone?: boolean;
  },
): Promise<PasskeyOptions> {
  const wish = how.isAlone === true ? 'required' : 'preferred';
  const { generateRegistrationOptions } = await library();
  return (await generateRegistrationOptions({
    rpName: party.name,
    rpID: party.id,
    userID: new TextEncoder().encode(user.id),
    userName: user.email,
    userDisplayName: user.name ?? user.email,
    challenge: bytesOf(how.challenge),
    timeout: how.timeoutMs,
    attestationType: 'none',
    excludeCredentials: described(how.passkeys),
    authenticatorSelection: { residentKey: wish, userVerification: wish },
    supportedAlgorithmIDs: algorithms,
  })) as unknown as PasskeyOptions;
}

/** @param how.passkeys null: any discoverable one of the relying party, which then has to verify its user */
export async function authenticationOptions(
  party: RelyingParty,
  how: {
    readonly challenge: string;
    readonly passkeys: readonly Passkey[] | null;
    readonly timeoutMs: number;
  },
): Promise<PasskeyOptions> {
  const { generateAuthenticationOptions } = await library();
  return (await generateAuthenticationOptions({
    rpID: party.id,
    challenge: bytesOf(how.challenge),
    timeout: how.timeoutMs,
    ...(how.passkeys === null ? {} : { allowCredentials: described(how.passkeys) }),
    userVerification: how.passkeys === null ? 'required' : 'preferred',
  })) as unknown as PasskeyOptions;
}

function described(passkeys: readonly Passkey[]) {
  return passkeys.map(({ credential, transports }) => ({ id: credential, transports: [...transports] }));
}

type RegisteredPasskey = Pick<Passkey, 'credential' | 'publicKey' | 'counter' | 'transports' | 'backedUp'>;

/** Returns undefined if the response does not prove a new passkey for this challenge, relying party and origin. */
export async function verifyRegistration(
  party: RelyingParty,
  challenge: string,
  response: unknown,
  isAlone = false,
): Promise<RegisteredPasskey | undefined> {
  try {
    const typed = response as RegistrationResponseJSON;
    const { verifyRegistrationResponse } = await library();
    if (await hasCertificates(typed)) return undefined;
    const { registrationInfo: found } = await verifyRegistrationResponse({
      response: typed,
      expectedChallenge: challenge,
      expectedOrigin: [...party.origins],
      expectedRPID: party.id,
      requireUserVerification: isAlone,
      supportedAlgorithmIDs: algorithms,
    });
    if (found === undefined || found.credential.publicKey.length > publicKeyBytesMax) return undefined;
    const { id, publicKey, counter, transports = [] } = found.credential;
    return {
      credential: id,
      publicKey: Buffer.from(publicKey).toString('base64url'),
      counter,
      transports: transports.filter((transport) => knownTransports.has(transport)),
      backedUp: found.credentialBackedUp,
    };
  } catch {
    // The library throws a sentence for each fault of the response; a client needs none of them.
    return undefined;
  }
}

/** WebAuthn §5.8.4 */
const knownTransports: ReadonlySet<string> = new Set([
  ...['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb'],
]);

/** True for every attestation but none and self attestation. */
async function hasCertificates({ response }: RegistrationResponseJSON): Promise<boolean> {
  const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers');
  const attestation = decodeAttestationObject(bytesOf(response.attestationObject));
  const format = attestation.get('fmt');
  if (format === 'none') return false;
  return format !== 'packed' || attestation.get('attStmt').get('x5c') !== undefined;
}

/** Returns the passkey after this use; undefined if the response does not prove it for this challenge. */
async function verifyAssertion(
  party: RelyingParty,
  passkey: Passkey,
  how: { readonly challenge: string; readonly response: unknown; readonly userVerified: boolean },
): Promise<Pick<Passkey, 'counter' | 'backedUp'> | undefined> {
  try {
    const { verifyAuthenticationResponse } = await library();
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: how.response as AuthenticationResponseJSON,
      expectedChallenge: how.challenge,
      expectedOrigin: [...party.origins],
      expectedRPID: party.id,
      requireUserVerification: how.userVerified,
      credential: {
        id: passkey.credential,
        publicKey: bytesOf(passkey.publicKey),
        counter: passkey.counter,
      },
    });
    const { newCounter: counter, credentialBackedUp: backedUp } = authenticationInfo;
    return verified ? { counter, backedUp } : undefined;
  } catch {
    // As above; a sign counter that did not grow is one of the faults.
    return undefined;
  }
}

/** The account that a discoverable passkey names: the `userID` of its registration. */
export function userOfHandle(handle: string | undefined): string | undefined {
  if (handle === undefined) return undefined;
  return Buffer.from(handle, 'base64url').toString('utf8');
}

function bytesOf(base64url: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(base64url, 'base64url'));
}

export type UsedPasskey = { readonly next: SecondFactor; readonly passkey: Passkey };

/** The answer of a browser to `navigator.credentials.get`. */
export type Assertion = { readonly id: string; readonly response: { readonly userHandle?: string } };

/**
 * @param how.challenge in base64url @param how.at milliseconds since the epoch
 * @returns undefined if no passkey of the account made the response
 */
export async function usePasskey(
  party: RelyingParty,
  factor: SecondFactor,
  response: Assertion,
  how: { readonly challenge: string; readonly userVerified: boolean; readonly at: number },
): Promise<UsedPasskey | undefined> {
  const passkey = factor.passkeys.find(({ credential }) => credential === response.id);
  if (passkey === undefined) return undefined;
  const { challenge, userVerified } = how;
  const used = await verifyAssertion(party, passkey, { challenge, response, userVerified });
  if (used === undefined) return undefined;
  const after = { ...passkey, ...used, lastUsedAt: new Date(how.at).toISOString() };
  const passkeys = factor.passkeys.map((each) => (each.id === passkey.id ? after : each));
  return { next: { ...factor, passkeys }, passkey: after };
}

export type RelyingParty = {
  /** Shown by browsers. */
  readonly name: string;
  readonly id: string;
  readonly origins: readonly string[];
};

/**
 * Without settings, passkeys belong to the host of the public URL; without that too, to `localhost`, which browsers trust, because an
 * IP address cannot be a relying party.
 * @param name shown by browsers @param origin the origin that clients see, as far as it is known
 * @throws ConfigurationError if an origin is not on the domain
 */
export function createRelyingParty(
  { publicUrl, passkeyOrigins, passkeyRelyingPartyId }: Settings,
  name: string,
  origin: () => string,
): () => RelyingParty {
  const listed = passkeyOrigins
    .split(',')
    .map((origin) => origin.trim())
    .filter((origin) => origin !== '');
  const read = (): RelyingParty => {
    const own = publicUrl === undefined ? onLocalhost(origin()) : originOfUrl(publicUrl);
    const origins = listed.length > 0 ? listed : [own];
    return { name, origins, id: passkeyRelyingPartyId ?? new URL(origins[0] ?? own).hostname };
  };
  if (listed.length > 0 || passkeyRelyingPartyId !== undefined) refuseForeignOrigins(read());
  return read;
}

function onLocalhost(listening: string): string {
  const url = new URL(listening);
  if (isIP(url.hostname.replace(/^\[|\]$/g, '')) !== 0) url.hostname = 'localhost';
  return url.origin;
}

function refuseForeignOrigins({ id, origins }: RelyingParty): void {
  const foreign = origins.filter((origin) => {
    const host = new URL(origin).hostname;
    return host !== id && !host.endsWith(`.${id}`);
  });
  if (foreign.length === 0) return;
  throw new ConfigurationError(
    foreign.map(
      (origin) =>
        `COMITY_PASSKEY_ORIGINS has ${origin}, which is not on the domain ${id} of the passkeys: set COMITY_PASSKEY_RELYING_PARTY_ID to a domain that all origins share`,
    ),
  );
}

/** 1023 octets (WebAuthn §4, credential id) in base64url. */
const idCharactersMax = 1364;
const clientDataCharactersMax = 8192;
const objectCharactersMax = 16_384;
const handleCharactersMax = 256;
export const passkeyNameCharactersMax = 100;

/** Browsers add members, which Comity does not use. */
const open = { additionalProperties: true } as const;

const credential = {
  id: Type.String({ maxLength: idCharactersMax }),
  rawId: Type.String({ maxLength: idCharactersMax }),
  type: Type.String(),
};

export const registrationSchema = Type.Object(
  {
    ...credential,
    response: Type.Object(
      {
        clientDataJSON: Type.String({ maxLength: clientDataCharactersMax }),
        attestationObject: Type.String({ maxLength: objectCharactersMax }),
        transports: Type.Optional(Type.Array(Type.String({ maxLength: 64 }), { maxItems: 16 })),
      },
      open,
    ),
  },
  { ...open, description: 'What `navigator.credentials.create` gives, as `toJSON()`.' },
);

export const assertionSchema = named(
  'PasskeyAssertion',
  Type.Object(
    {
      ...credential,
      response: Type.Object(
        {
          clientDataJSON: Type.String({ maxLength: clientDataCharactersMax }),
          authenticatorData: Type.String({ maxLength: objectCharactersMax }),
          signature: Type.String({ maxLength: objectCharactersMax }),
          userHandle: Type.Optional(Type.String({ maxLength: handleCharactersMax })),
        },
        open,
      ),
    },
    { ...open, description: 'What `navigator.credentials.get` gives, as `toJSON()`.' },
  ),
);

const exampleId = 'iNBb1MLvSbqHPzqqVYTbPw';

export const exampleRegistration = {
  id: exampleId,
  rawId: exampleId,
  type: 'public-key',
  response: { clientDataJSON: 'eyJ0eXBlIjoid2ViYXV0aG4uY3JlYXRlIn0', attestationObject: 'o2NmbXRkbm9uZQ' },
};

export const exampleAssertion = {
  id: exampleId,
  rawId: exampleId,
  type: 'public-key',
  response: {
    clientDataJSON: 'eyJ0eXBlIjoid2ViYXV0aG4uZ2V0In0',
    authenticatorData: 'SZYN5YgOjGh0NBcPZHZgW4',
    signature: 'MEUCIQDy',
  },
};

export const passkeyRequestOutput = {
  schema: named('PasskeyRequest', {
    description: 'Options for `navigator.credentials`, and the challenge to send back with its result.',
    type: 'object',
    properties: {
      challenge: { type: 'string' },
      expiresIn: { type: 'integer', description: 'Seconds until the challenge expires.' },
      options: {
        type: 'object',
        description:
          'For `PublicKeyCredential.parseCreationOptionsFromJSON` or `parseRequestOptionsFromJSON`.',
      },
    },
    required: ['challenge', 'expiresIn', 'options'],
  }),
  example: {
    challenge: exampleChallenge,
    expiresIn: 300,
    options: { challenge: 'd2hhdCB0aGUgYXV0aGVudGljYXRvciBzaWducw', rpId: 'shop.example' },
  },
};

const passkeyNode = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    name: { type: 'string' },
    transports: { type: 'array', items: { type: 'string' } },
    backedUp: { type: 'boolean', description: 'Whether the authenticator keeps a copy elsewhere.' },
    createdAt: { type: 'string', format: 'date-time' },
    lastUsedAt: { type: ['string', 'null'] },
  },
  required: ['id', 'name', 'transports', 'backedUp', 'createdAt', 'lastUsedAt'],
};

const examplePasskey = {
  id: 'pas_01k1jx7v2mh5s8b4c9d0e6f3ga',
  name: 'Laptop',
  transports: ['internal'],
  backedUp: true,
  createdAt: '2026-11-26T10:00:00.000Z',
  lastUsedAt: null,
};

export const passkeyOutput = {
  schema: named('Passkey', { description: 'A passkey of an account.', ...passkeyNode }),
  example: examplePasskey,
};

export const addedPasskeyOutput = {
  schema: named('AddedPasskey', {
    description: 'A new passkey, with recovery codes if it is the first factor of the account.',
    type: 'object',
    properties: { passkey: passkeyNode, recoveryCodes: { type: 'array', items: { type: 'string' } } },
    required: ['passkey'],
  }),
  example: { passkey: examplePasskey },
};

export const passkeysOutput = {
  schema: named('Passkeys', {
    description: 'The passkeys of an account.',
    type: 'object',
    properties: { items: { type: 'array', items: passkeyNode } },
    required: ['items'],
  }),
  example: { items: [examplePasskey] },
};
