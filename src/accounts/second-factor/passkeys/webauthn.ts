/**
 * WebAuthn Level 3 by `@simplewebauthn/server`: options for the browser, and the verification of what it sends back (§7.1, §7.2 there).
 * Attestation by certificates is refused: Comity does not ask who made an authenticator, and the certificates of a client
 * could name addresses to fetch lists of revocations from.
 */
import { setImmediate } from 'node:timers/promises';
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import type { User } from '../../account-tables.ts';
import type { Passkey, SecondFactor } from '../factor-row.ts';
import type { RelyingParty } from './relying-party.ts';

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
  how: { readonly challenge: string; readonly passkeys: readonly Passkey[]; readonly timeoutMs: number },
): Promise<PasskeyOptions> {
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
    authenticatorSelection: { residentKey: 'preferred', userVerification: 'preferred' },
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

export type RegisteredPasskey = Pick<
  Passkey,
  'credential' | 'publicKey' | 'counter' | 'transports' | 'backedUp'
>;

/** Returns undefined if the response does not prove a new passkey for this challenge, relying party and origin. */
export async function verifyRegistration(
  party: RelyingParty,
  challenge: string,
  response: unknown,
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
      requireUserVerification: false,
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
export async function verifyAssertion(
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
