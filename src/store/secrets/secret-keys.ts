/**
 * The keys that encrypt secrets at rest (AES-256-GCM, NIST SP 800-38D): reading them from settings and from the key file, and sealing one
 * text with one of them. Which rows are sealed, and when, is sealed-store.ts.
 */
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
import { secretKeyBytes } from '../../config/refusals.ts';

export type SecretKey = {
  /** Stored beside each ciphertext; derived from the key, so the same key has the same id everywhere. */
  readonly id: string;
  readonly key: KeyObject;
};

/** Thrown where secrets cannot be read or written with the keys that are given. The message says what to do. */
export class SecretKeyFailure extends Error {
  override readonly name = 'SecretKeyFailure';
  readonly code = 'secret_key_unfit';
}

/** A row's place, bound into its ciphertext so that one cannot be put in place of another. */
export type Place = { readonly table: string; readonly id: string };

const nonceBytes = 12;
const tagBytes = 16;
const idCharacters = 16;
const start = '{"sealed":{"key":"';

export function secretKeyOf(bytes: Uint8Array): SecretKey {
  const id = createHmac('sha256', bytes).update('comity secret key id').digest('hex').slice(0, idCharacters);
  return { id, key: createSecretKey(bytes) };
}

/** The id of the key that sealed the document; undefined for one that is not sealed. */
export function sealingKeyOf(doc: string): string | undefined {
  return doc.startsWith(start) ? doc.slice(start.length, start.length + idCharacters) : undefined;
}

/** @param random that many octets of good randomness */
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

/** @throws SecretKeyFailure where the document was changed, or sealed for another place */
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
    const message = `the secret ${place.table}/${place.id} does not decrypt with its key ${id}: the row was changed or moved; bring it back from a backup`;
    throw new SecretKeyFailure(message, { cause });
  }
}

/** Names hold no NUL. The last part is the column. */
function associatedData({ table, id }: Place): Buffer {
  return Buffer.from(`comity\0${table}\0${id}\0doc`);
}

/**
 * The keys in the file, the one that encrypts first.
 * @returns none where there is no such file
 * @throws SecretKeyFailure where it holds something else, or is readable by others
 */
export function readKeyFile(path: string): readonly SecretKey[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return [];
    throw new SecretKeyFailure(`the key file ${path} cannot be read: ${messageOf(error)}`, { cause: error });
  }
  const lines = text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'));
  const keys = lines.map((line) => secretKeyBytes(line.trim()));
  if (keys.length === 0 || keys.includes(undefined)) {
    throw new SecretKeyFailure(
      `the key file ${path} holds no key: bring it back from where it is kept; without it the secrets of this store cannot be read`,
    );
  }
  return keys.filter((bytes) => bytes !== undefined).map(secretKeyOf);
}

const heading =
  '# Encrypts the secrets in the store of Comity. Keep a copy apart from the backups; they need it.\n';

/**
 * Makes the file, readable by its owner alone, unless there is one.
 * @param random that many octets of good randomness
 * @returns whether this call made it
 */
export function makeKeyFile(path: string, random: (count: number) => Buffer): boolean {
  const partial = `${path}.${random(6).toString('hex')}`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    write(partial, `${heading}${random(32).toString('base64')}\n`);
    try {
      // A link, unlike a new name, never takes the place of what another process made.
      linkSync(partial, path);
      return true;
    } finally {
      rmSync(partial, { force: true });
    }
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw new SecretKeyFailure(
      `no key file can be made at ${path} (${messageOf(error)}): set COMITY_SECRET_KEY, such as from "openssl rand -base64 32"`,
      { cause: error },
    );
  }
}

/** Replaces the file. @param keys the texts of the keys, the one that encrypts first */
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
