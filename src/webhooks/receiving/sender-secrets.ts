/**
 * The secrets of all senders as this process knows them (§5.6). Where a variable of the environment is set, its secrets are the sender's and
 * the store is not asked; otherwise they are in a row that all processes share, made at the first start that finds none, and followed.
 *
 * A row stays when its sender is taken out of the configuration or its variable is set: what was made is there again when they come back.
 */
import { type SecretPlace, secretPlaces } from '../../config/senders/secret-rule.ts';
import type { DeclaredSender } from '../../config/senders.ts';
import type { Services } from '../../store/capabilities.ts';
import { keptRow } from '../../store/kept-row.ts';
import { tryCommit } from '../../store/lines.ts';
import { type Change, Overtaken, type Row, type Store } from '../../store/store.ts';
import { createTableLooks, type TableLooks } from '../../store/table-looks.ts';
import { makeEndpointSecret, rotatedSecrets } from '../secrets.ts';
import { type SenderSecretsRow, senderSecretsTable } from './received-tables.ts';

export type SenderSecret = {
  readonly secret: string;
  /** Milliseconds since the epoch from which on it is none; null: no end is set. */
  readonly until: number | null;
};

/** Which secrets: those that a sender signs with, or that it is forwarded with. */
export type SecretName = { readonly sender: string; readonly use: 'receive' | 'forward' };

export type SenderSecrets = {
  /** The current one first; those that are over may still be there. The very same array while nothing changed. */
  of(name: SecretName): readonly SenderSecret[];
  source(name: SecretName): 'environment' | 'store';
  /** Reads what stands now: after a rotation by this process. */
  refresh(): Promise<void>;
  close(): Promise<void>;
};

/** Secrets that were made at this start, to be shown this once. */
export type MadeSecret = SecretName & { readonly variable: string; readonly secret: string };

export type LoadSenderSecrets = Pick<Services, 'clock' | 'random' | 'observe'> & {
  readonly store: Pick<Store, 'read' | 'commit' | 'onChange'>;
  readonly senders: ReadonlyMap<string, DeclaredSender>;
  /** Secrets of the environment by variable. */
  readonly given: ReadonlyMap<string, readonly string[]>;
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

type MakingSecrets = Pick<Services, 'clock' | 'random'> & {
  readonly store: Pick<Store, 'read' | 'commit'>;
};

/**
 * Makes the first secret of a sender whose variable is not set.
 * @returns the secret; undefined where another process made one @throws StoreUnavailable
 */
async function makeSenderSecret(
  { store, clock, random }: MakingSecrets,
  name: SecretName,
): Promise<string | undefined> {
  const secret = makeEndpointSecret(random);
  const change = secretsChange(name, undefined, [{ secret, until: null }], clock());
  const { outcome } = await store.commit({ changes: [change], events: [] });
  return outcome === 'committed' ? secret : undefined;
}

export type Rotation = {
  /** Undefined: one is made. */
  readonly secret?: string | undefined;
  /** How long the others are taken still, in milliseconds; 0: no longer. */
  readonly overlapMs: number;
};

/**
 * Rotates a sender's secret (§5.6, §6.7) to one made here, or to one that the sender gave. The others are accepted beside it for as long as the
 * sender needs to learn it; one that would have ended sooner still does. What may be rotated is the caller's to know: secrets of the
 * environment are not, and whether the rule can use a given one is said by config/senders/secret-rule.ts.
 *
 * Other processes know it as soon as the store tells them, this one after `SenderSecrets.refresh`. @throws StoreUnavailable
 */
export async function rotateSenderSecret(
  { store, clock, random }: MakingSecrets & { readonly store: Pick<Store, 'lines'> },
  name: SecretName,
  { secret = makeEndpointSecret(random), overlapMs }: Rotation,
): Promise<{ readonly secret: string }> {
  return store.lines.change({ table: senderSecretsTable, id: secretsRowId(name) }, async () => {
    const stood = await readSenderSecretsRow(store, name);
    const at = clock();
    const secrets = rotatedSecrets(stood?.secrets ?? [], secret, at, overlapMs);
    const commit = await tryCommit(store, { changes: [secretsChange(name, stood, secrets, at)], events: [] });
    if (commit instanceof Overtaken) return commit;
    return { secret };
  });
}

/** A name of a sender holds no slash. */
function secretsRowId({ sender, use }: SecretName): string {
  return use === 'receive' ? sender : `${sender}/forward`;
}

export type KeptSecrets = Pick<Row, 'rev' | 'createdAt' | 'updatedAt'> & SenderSecretsRow;

/** Undefined where none were made yet. */
async function readSenderSecretsRow(
  store: Pick<Store, 'read'>,
  name: SecretName,
): Promise<KeptSecrets | undefined> {
  const row = await store.read(senderSecretsTable, secretsRowId(name));
  if (row === undefined) return undefined;
  const { secrets } = JSON.parse(row.doc) as SenderSecretsRow;
  return { secrets, rev: row.rev, createdAt: row.createdAt, updatedAt: row.updatedAt };
}

/** @param stood what was read; undefined: there was none @param at milliseconds since the epoch */
function secretsChange(
  name: SecretName,
  stood: KeptSecrets | undefined,
  secrets: readonly SenderSecret[],
  at: number,
): Change {
  const updatedAt = Math.max(at, stood?.updatedAt ?? 0);
  return {
    table: senderSecretsTable,
    id: secretsRowId(name),
    expect: stood === undefined ? { absent: true } : { rev: stood.rev },
    next: keptRow(JSON.stringify({ secrets }), null, stood?.createdAt ?? at, updatedAt),
  };
}
