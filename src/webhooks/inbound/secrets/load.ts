/**
 * The secrets of all senders as this process knows them (§5.6). Where a variable of the environment is set, its secrets are the sender's and
 * the store is not asked; otherwise they stand in a row that all processes share, made at the first start that finds none, and followed.
 *
 * A row stays when its sender is taken out of the configuration or its variable is set: what was made is there again when they come back.
 */

import { type SecretPlace, secretPlaces } from '../../../config/senders/secret-use.ts';
import type { DeclaredSender } from '../../../config/senders.ts';
import type { Observe } from '../../../observe/observation.ts';
import type { Store } from '../../../store/store.ts';
import { createTableLooks, type TableLooks } from '../../../store/table-looks.ts';
import type { MadeSecret, SecretName, SenderSecret, SenderSecrets } from '../sender-secrets.ts';
import { senderSecretsTable } from '../tables.ts';
import { makeSenderSecret } from './make.ts';
import { readSenderSecretsRow, secretsRowId } from './row.ts';

export type LoadSenderSecrets = {
  readonly store: Pick<Store, 'read' | 'commit' | 'onChange'>;
  readonly senders: ReadonlyMap<string, DeclaredSender>;
  /** Secrets of the environment by variable. */
  readonly given: ReadonlyMap<string, readonly string[]>;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** That many octets of good randomness. */
  readonly random: (count: number) => Buffer;
  readonly observe: Observe;
};

export type LoadedSenderSecrets = {
  readonly secrets: SenderSecrets;
  /** Those that this start made, in the order of the senders: nobody is shown them again. */
  readonly made: readonly MadeSecret[];
};

/** A change that the store did not tell of is found after this time. */
const lookMs = 60_000;

/** @throws StoreUnavailable */
export async function loadSenderSecrets(options: LoadSenderSecrets): Promise<LoadedSenderSecrets> {
  const places = secretPlaces(options.senders.values());
  const kept = places.filter(({ variable }) => !options.given.has(variable));
  // Beside each other: what many senders lack is committed together.
  const made = await Promise.all(kept.map((place) => makeWhereMissing(options, place)));
  const followed = new FollowedSecrets(options, places, kept);
  await followed.refresh();
  followed.follow();
  return { secrets: followed, made: made.filter((each) => each !== undefined) };
}

/** Of several processes that start at once one makes the secret, and it alone knows that it did. */
async function makeWhereMissing(
  { store, clock, random }: LoadSenderSecrets,
  { name, use, variable }: SecretPlace,
): Promise<MadeSecret | undefined> {
  const of = { sender: name, use };
  if ((await store.read(senderSecretsTable, secretsRowId(of))) !== undefined) return undefined;
  const secret = await makeSenderSecret({ store, clock, random }, of);
  return secret === undefined ? undefined : { ...of, variable, secret };
}

type Known = { readonly secrets: readonly SenderSecret[]; readonly rev: number };

class FollowedSecrets implements SenderSecrets {
  readonly #store: LoadSenderSecrets['store'];
  /** By use and then by sender: a message asks for its sender's, and makes no text to ask with. */
  readonly #known: Readonly<Record<SecretName['use'], Map<string, Known>>>;
  readonly #kept: readonly SecretPlace[];
  readonly #looks: TableLooks;

  constructor(options: LoadSenderSecrets, places: readonly SecretPlace[], kept: readonly SecretPlace[]) {
    const { store, given, observe } = options;
    this.#store = store;
    this.#kept = kept;
    this.#known = { receive: new Map(), forward: new Map() };
    for (const { name, use, variable } of places) {
      const secrets = (given.get(variable) ?? []).map((secret) => ({ secret, until: null }));
      this.#known[use].set(name, { secrets, rev: 0 });
    }
    this.#looks = createTableLooks({
      store,
      table: senderSecretsTable,
      everyMs: lookMs,
      work: () => this.#read(),
      onFailed: (error) => observe({ kind: 'store-failed', what: 'following the secrets of senders', error }),
    });
  }

  of({ sender, use }: SecretName): readonly SenderSecret[] {
    return this.#known[use].get(sender)?.secrets ?? none;
  }

  source({ sender, use }: SecretName): 'environment' | 'store' {
    const isKept = this.#kept.some((place) => place.name === sender && place.use === use);
    return isKept ? 'store' : 'environment';
  }

  refresh(): Promise<void> {
    return this.#looks.look();
  }

  follow(): void {
    if (this.#kept.length > 0) this.#looks.follow();
  }

  close(): Promise<void> {
    return this.#looks.close();
  }

  async #read(): Promise<void> {
    for (const { name, use } of this.#kept) {
      const row = await readSenderSecretsRow(this.#store, { sender: name, use });
      const known = this.#known[use].get(name);
      if (row === undefined || row.rev === known?.rev) continue;
      this.#known[use].set(name, { secrets: row.secrets, rev: row.rev });
    }
  }
}

const none: readonly SenderSecret[] = [];
