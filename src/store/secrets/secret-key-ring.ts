/** The secret keys of a process, and the key row of the store, which names the active one. Only sealed-store.ts uses it. */
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
import type { Observe } from '../../observe/observation.ts';
import { type Change, keptRow, type Row, type Store, type Unit } from '../store.ts';

export type SealOptions = {
  /** Names of the tables, each with the ids of rows that stay in plain text. */
  readonly tables: ReadonlyMap<string, ReadonlySet<string>>;
  readonly keyTable: string;
  /** Keys from the settings, the preferred one first; without any, the key file holds the keys. */
  readonly given: readonly SecretKey[];
  /** Path of the key file, which Comity creates if no key is given and the store has none yet. */
  readonly file: string;
  readonly random: (count: number) => Buffer;
  readonly clock: () => number;
  readonly observe: Observe;
};

/** Id of the key row, which stays in plain text. */
export const keyRowId = 'secret_key';

type KeyRow = {
  /** Id of the active key. */
  readonly active: string;
  /** A known text sealed with that key. */
  readonly check: string;
};

const checkText = 'comity';
const attemptsMax = 20;

export function keyOfRow(doc: string): KeyRow {
  return JSON.parse(doc) as KeyRow;
}

export class KeyRing {
  readonly #options: SealOptions;
  readonly #keys = new Map<string, SecretKey>();
  /** The first key of the settings, otherwise of the key file. The key row decides which one seals. */
  #preferred: SecretKey | undefined;
  #active: SecretKey | undefined;

  constructor(options: SealOptions) {
    this.#options = options;
    for (const key of options.given) this.#keys.set(key.id, key);
    this.#readFile();
    this.#preferred = options.given[0] ?? this.#preferred;
  }

  get active(): string {
    return this.#sealing().id;
  }

  /** Checks the key row against the given keys, or creates it. */
  async open(store: Store): Promise<void> {
    for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
      const row = await this.#readRow(store);
      if (row === undefined) {
        if (this.#preferred === undefined) this.#makeFile();
        // A failure means that another process was first.
        if (await this.#name(store, this.#first(), undefined)) return;
        continue;
      }
      this.#adopt(row);
      const preferred = this.#preferred;
      // An exclusive store changes its key here; processes that share one use `rotateSecretKey`.
      if (store.shared || preferred === undefined || preferred.id === row.key.active) return;
      if (await this.#name(store, preferred, row.row)) return;
    }
    throw new SecretKeyFailure('other processes kept changing the key of the secrets; start again');
  }

  /** Adopts the active key that another process named. */
  async follow(store: Store): Promise<void> {
    const row = await this.#readRow(store);
    if (row !== undefined && row.key.active !== this.#active?.id) this.#adopt(row);
  }

  /** Makes the key active. @returns true if another key was active before */
  async replace(store: Store, key: SecretKey): Promise<boolean> {
    for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
      const row = await this.#readRow(store);
      if (row?.key.active === key.id) {
        this.#adopt(row);
        return false;
      }
      if (await this.#name(store, key, row?.row)) return true;
    }
    throw new SecretKeyFailure('other processes kept changing the key of the secrets; run this again');
  }

  /** Writes the key row. @returns false if it changed meanwhile */
  async #name(store: Store, key: SecretKey, before: Row | undefined): Promise<boolean> {
    const { keyTable: table, random, clock } = this.#options;
    const check = seal(key, { table, id: keyRowId }, checkText, random);
    const doc: KeyRow = { active: key.id, check };
    const now = clock();
    const next = keptRow(
      JSON.stringify(doc),
      null,
      before?.createdAt ?? now,
      Math.max(now, before?.updatedAt ?? 0),
    );
    const expect = before === undefined ? ({ absent: true } as const) : { rev: before.rev };
    const commit = await store.commit({ changes: [{ table, id: keyRowId, expect, next }], events: [] });
    if (commit.outcome === 'committed') this.#active = key;
    return commit.outcome === 'committed';
  }

  unseal(table: string, id: string, doc: string): string {
    const keyId = sealingKeyOf(doc);
    if (keyId === undefined) return doc;
    return unseal(this.#keyOf(keyId), { table, id }, doc);
  }

  sealUnit(unit: Unit): Unit {
    return { ...unit, changes: unit.changes.map((change) => this.#sealChange(change)) };
  }

  /** The change that seals a row with the active key; undefined if it is already. */
  resealing(table: string, row: Row): Change | undefined {
    if (this.#staysPlain(table, row.id) || sealingKeyOf(row.doc) === this.active) return undefined;
    const { id, rev, owner, createdAt, updatedAt } = row;
    const doc = this.unseal(table, id, row.doc);
    return this.#sealChange({ table, id, expect: { rev }, next: keptRow(doc, owner, createdAt, updatedAt) });
  }

  #sealChange(change: Change): Change {
    const { table, id, next } = change;
    if (next === null || this.#staysPlain(table, id)) return change;
    const doc = seal(this.#sealing(), { table, id }, next.doc, this.#options.random);
    return { ...change, next: { ...next, doc } };
  }

  #staysPlain(table: string, id: string): boolean {
    return this.#options.tables.get(table)?.has(id) ?? true;
  }

  #sealing(): SecretKey {
    if (this.#active === undefined) throw new Error('the key row has not been read');
    return this.#active;
  }

  #first(): SecretKey {
    if (this.#preferred === undefined) throw new Error('the ring of keys is empty');
    return this.#preferred;
  }

  /** @throws SecretKeyFailure */
  #keyOf(id: string): SecretKey {
    const known = this.#keys.get(id);
    if (known !== undefined) return known;
    // Another process may have added a key to the file.
    this.#readFile();
    const found = this.#keys.get(id);
    if (found !== undefined) return found;
    throw new SecretKeyFailure(this.#missing(id));
  }

  #missing(id: string): string {
    const { given, file } = this.#options;
    const [first] = given;
    if (first !== undefined) {
      return (
        `the secrets in the store are encrypted with the key ${id}, and COMITY_SECRET_KEY is the key ${first.id}: ` +
        'set it to that key, or, to replace that key, put it into COMITY_SECRET_KEY_PREVIOUS'
      );
    }
    return (
      `the secrets in the store are encrypted with the key ${id}, which this process does not have: ` +
      `set COMITY_SECRET_KEY to it, or put the key file back at ${file}`
    );
  }

  #adopt({ key: { active, check } }: StoredKey): void {
    const key = this.#keyOf(active);
    const place = { table: this.#options.keyTable, id: keyRowId };
    if (unseal(key, place, check) !== checkText) throw new SecretKeyFailure(this.#missing(active));
    this.#active = key;
  }

  #makeFile(): void {
    const { file, random, observe } = this.#options;
    if (makeKeyFile(file, random)) observe({ kind: 'secret-key-made', file });
    this.#readFile();
  }

  #readFile(): void {
    const keys = readKeyFile(this.#options.file);
    for (const key of keys) this.#keys.set(key.id, key);
    if (this.#options.given.length === 0) this.#preferred = keys[0];
  }

  async #readRow(store: Store): Promise<StoredKey | undefined> {
    const row = await store.read(this.#options.keyTable, keyRowId);
    return row === undefined ? undefined : { row, key: keyOfRow(row.doc) };
  }
}

type StoredKey = { readonly row: Row; readonly key: KeyRow };

/* The keys that encrypt secrets (AES-256-GCM, NIST SP 800-38D): reads them, and seals a text with one. */

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
type Place = { readonly table: string; readonly id: string };

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
function seal({ id, key }: SecretKey, place: Place, doc: string, random: (count: number) => Buffer): string {
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
function makeKeyFile(path: string, random: (count: number) => Buffer): boolean {
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
