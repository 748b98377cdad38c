/** The keys that encrypt secrets (AES-256-GCM, NIST SP 800-38D): reads them, and seals a text with one. See sealed-store.ts. */
import { createCipheriv, createDecipheriv, createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { secretKeyBytes, secretKeyLines } from '../../config/refusals.ts';

export type SecretKey = {
  /** Stored with each ciphertext; derived from the key, so equal keys have equal ids. */
  readonly id: string;
  readonly key: KeyObject;
};

/** Thrown if secrets cannot be read or written with the given keys. The message says what to do. */
export class SecretKeyFailure extends Error {
  override readonly name = 'SecretKeyFailure';
  readonly code = 'secret_key_unfit';
}

/** A row's place, authenticated with its ciphertext, so that one cannot replace another. */
export type Place = { readonly table: string; readonly id: string };

const nonceBytes = 12;
const tagBytes = 16;
const idCharacters = 16;
const start = '{"sealed":{"key":"';

export function secretKeyOf(bytes: Uint8Array): SecretKey {
  const id = createHmac('sha256', bytes).update('comity secret key id').digest('hex').slice(0, idCharacters);
  return { id, key: createSecretKey(bytes) };
}

/** The id of the key that sealed the document; undefined if it is not sealed. */
export function sealingKeyOf(doc: string): string | undefined {
  return doc.startsWith(start) ? doc.slice(start.length, start.length + idCharacters) : undefined;
}

/** @param random returns that many octets from a cryptographic source */
export function seal(
  { id, key }: SecretKey,
  place: Place,
  doc: string,
  random: (count: number) => Buffer,
): string {
  const nonce = random(nonceBytes);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(associatedData(place));
  const sealed = Buffer.concat([nonce, cipher.update(doc, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  return `${start}${id}","data":"${sealed.toString('base64')}"}}`;
}

/** @throws SecretKeyFailure if the document was changed, or sealed for another place */
export function unseal({ id, key }: SecretKey, place: Place, doc: string): string {
  try {
    const { sealed } = JSON.parse(doc) as { readonly sealed: { readonly data: string } };
    const data = Buffer.from(sealed.data, 'base64');
    const decipher = createDecipheriv('aes-256-gcm', key, data.subarray(0, nonceBytes), {
      authTagLength: tagBytes,
    });
    decipher.setAAD(associatedData(place)).setAuthTag(data.subarray(-tagBytes));
    return decipher.update(data.subarray(nonceBytes, -tagBytes), undefined, 'utf8') + decipher.final('utf8');
  } catch (cause) {
    const message = `the secret ${place.table}/${place.id} does not decrypt with its key ${id}: the row was changed or moved; restore it from a backup`;
    throw new SecretKeyFailure(message, { cause });
  }
}

/** Names contain no NUL. The last part is the column. */
function associatedData({ table, id }: Place): Buffer {
  return Buffer.from(`comity\0${table}\0${id}\0doc`);
}

/**
 * Reads the keys of the file, the preferred one first; empty if there is no file.
 * @throws SecretKeyFailure if the file cannot be read or holds something else
 */
export function readKeyFile(path: string): readonly SecretKey[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return [];
    throw new SecretKeyFailure(`the key file ${path} cannot be read: ${messageOf(error)}`, { cause: error });
  }
  const keys = secretKeyLines(text).map(secretKeyBytes);
  if (keys.length === 0 || keys.includes(undefined)) {
    throw new SecretKeyFailure(
      `the key file ${path} holds no valid key: restore your copy of it; without it the secrets of this store cannot be read`,
    );
  }
  return keys.filter((bytes) => bytes !== undefined).map(secretKeyOf);
}

const heading =
  '# Encrypts the secrets in the store of Comity. Keep a copy apart from the backups; they need it.\n';

/**
 * Creates the file, readable by its owner only, unless it exists.
 * @param random returns that many octets from a cryptographic source
 * @returns true if this call created it
 */
export function makeKeyFile(path: string, random: (count: number) => Buffer): boolean {
  const partial = `${path}.${random(6).toString('hex')}`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    write(partial, `${heading}${random(32).toString('base64')}\n`);
    try {
      // Unlike a rename, a link never replaces a file that another process created.
      linkSync(partial, path);
      return true;
    } finally {
      rmSync(partial, { force: true });
    }
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw new SecretKeyFailure(
      `cannot create the key file ${path} (${messageOf(error)}): set COMITY_SECRET_KEY, for example to the output of "openssl rand -base64 32"`,
      { cause: error },
    );
  }
}

/** @param keys the keys of the new file, the preferred one first */
export function replaceKeyFile(path: string, keys: readonly SecretKey[]): void {
  const partial = `${path}.partial`;
  rmSync(partial, { force: true });
  write(partial, heading + keys.map(({ key }) => `${key.export().toString('base64')}\n`).join(''));
  renameSync(partial, path);
}

function write(path: string, text: string): void {
  const file = openSync(path, 'wx', 0o600);
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
