/**
 * The secrets of all senders in this process (§5.6). If a variable of the environment is set, its secrets apply and the
 * store is not read; otherwise they are in a row that all processes share, created at the first start without one, and
 * followed. A row stays when its sender leaves the configuration or its variable is set, and applies again if they
 * return.
 */
import { type SecretPlace, secretPlaces } from '../../config/sender-secrets.ts';
import type { DeclaredSender } from '../../config/senders.ts';
import type { Services } from '../../store/capabilities.ts';
import { createFollower, type Follower } from '../../store/follower.ts';
import { tryCommit } from '../../store/lines.ts';
import { type Change, keptRow, Overtaken, type Row, type Store } from '../../store/store.ts';
import { isOneOf, setsSecret } from '../receive/challenge.ts';
import { makeEndpointSecret, rotatedSecrets } from '../secrets.ts';
import { type SenderSecretsRow, senderSecretsTable } from './received-tables.ts';

export type SenderSecret = {
  readonly secret: string;
  /** End of validity in milliseconds since the epoch; null: unlimited. */
  readonly until: number | null;
};

/** `receive`: the secrets that verify a sender's messages; `forward`: those that sign forwarded ones. */
export type SecretName = { readonly sender: string; readonly use: 'receive' | 'forward' };

export type SenderSecrets = {
  /** Returns the secrets, the current one first; may include expired ones. The same array while nothing changed. */
  of(name: SecretName): readonly SenderSecret[];
  /** The tokens of a sender's challenge: those of the environment, or else its secrets that are valid at `now` (ms since the epoch). */
  tokensOf(sender: string, now: number): readonly string[];
  source(name: SecretName): 'environment' | 'store';
  /** Rotates a secret; this process applies it after `refresh`. @throws StoreUnavailable */
  rotate(name: SecretName, rotation: Rotation): Promise<{ readonly secret: string }>;
  /**
   * Takes the secret that a sender brings in its handshake, if it has none.
   * @returns false if it has another one @throws StoreUnavailable
   */
  adopt(name: SecretName, secret: string): Promise<boolean>;
  /** Reads the current secrets after this process rotated one. */
  refresh(): Promise<void>;
  close(): Promise<void>;
};

/** A secret created at this start, to be shown once. */
export type MadeSecret = SecretName & { readonly variable: string; readonly secret: string };

export type LoadSenderSecrets = Pick<Services, 'clock' | 'random' | 'observe'> & {
  readonly store: Pick<Store, 'read' | 'commit' | 'onChange' | 'lines'>;
  readonly senders: ReadonlyMap<string, DeclaredSender>;
  /** Secrets of the environment by variable. */
  readonly given: ReadonlyMap<string, readonly string[]>;
};

export type LoadedSenderSecrets = {
  readonly secrets: SenderSecrets;
  /** Secrets that this start created, in the order of the senders; they are not shown again. */
  readonly made: readonly MadeSecret[];
};

/** Interval after which a change without a notification from the store is found. */
const lookMs = 60_000;

/** @throws StoreUnavailable */
export async function loadSenderSecrets(options: LoadSenderSecrets): Promise<LoadedSenderSecrets> {
  const all = secretPlaces(options.senders.values());
  const places = all.filter((place): place is KeptPlace => place.use !== 'challenge');
  // A function that judges may need no secret: none is made for it.
  const kept = places.filter(
    ({ variable, sender, use }) =>
      !options.given.has(variable) && (use === 'forward' || sender.rule.signature.kind !== 'function'),
  );
  // A sender that brings its secret has none until its handshake.
  const needed = kept.filter(({ sender, use }) => use === 'forward' || !setsSecret(sender.rule.challenge));
  // Concurrently, so that the store commits several new secrets together.
  const made = await Promise.all(needed.map((place) => makeWhereMissing(options, place)));
  const followed = new FollowedSecrets(options, places, kept);
  await followed.refresh();
  followed.follow();
  return { secrets: followed, made: made.filter((each) => each !== undefined) };
}

/** If several processes start together, one creates the secret, and only that one returns it. */
async function makeWhereMissing(
  { store, clock, random }: LoadSenderSecrets,
  { name, use, variable }: KeptPlace,
): Promise<MadeSecret | undefined> {
  const of = { sender: name, use };
  if ((await store.read(senderSecretsTable, secretsRowId(of))) !== undefined) return undefined;
  const secret = await makeSenderSecret({ store, clock, random }, of);
  return secret === undefined ? undefined : { ...of, variable, secret };
}

/** The place of a secret that rotates, and that the store keeps where the environment has none. */
type KeptPlace = SecretPlace & Pick<SecretName, 'use'>;

type Known = { readonly secrets: readonly SenderSecret[]; readonly rev: number };

class FollowedSecrets implements SenderSecrets {
  readonly #store: LoadSenderSecrets['store'];
  readonly #making: Pick<LoadSenderSecrets, 'store' | 'clock' | 'random'>;
  /** By use, then by sender: a lookup per message builds no key. */
  readonly #known: Readonly<Record<SecretName['use'], Map<string, Known>>>;
  readonly #kept: readonly KeptPlace[];
  readonly #tokens: ReadonlyMap<string, readonly string[]>;
  readonly #follower: Follower;

  constructor(options: LoadSenderSecrets, places: readonly KeptPlace[], kept: readonly KeptPlace[]) {
    const { store, clock, random, given, observe } = options;
    this.#store = store;
    this.#making = { store, clock, random };
    this.#kept = kept;
    this.#tokens = new Map(
      [...options.senders.values()].map(({ name, challengeVariable = '' }) => [
        name,
        given.get(challengeVariable) ?? [],
      ]),
    );
    this.#known = { receive: new Map(), forward: new Map() };
    for (const { name, use, variable } of places) {
      const secrets = (given.get(variable) ?? []).map((secret) => ({ secret, until: null }));
      this.#known[use].set(name, { secrets, rev: 0 });
    }
    this.#follower = createFollower(
      () => this.#read(),
      (error) => observe({ kind: 'store-failed', what: 'following the secrets of senders', error }),
      lookMs,
    );
  }

  of({ sender, use }: SecretName): readonly SenderSecret[] {
    return this.#known[use].get(sender)?.secrets ?? none;
  }

  tokensOf(sender: string, now: number): readonly string[] {
    const own = this.#tokens.get(sender) ?? [];
    return own.length > 0
      ? own
      : validAt(this.of({ sender, use: 'receive' }), now).map(({ secret }) => secret);
  }

  source({ sender, use }: SecretName): 'environment' | 'store' {
    const isKept = this.#kept.some((place) => place.name === sender && place.use === use);
    return isKept ? 'store' : 'environment';
  }

  rotate(name: SecretName, rotation: Rotation): Promise<{ readonly secret: string }> {
    return rotateSenderSecret(this.#making, name, rotation);
  }

  async adopt(name: SecretName, secret: string): Promise<boolean> {
    if (this.source(name) === 'store') {
      const { store, clock } = this.#making;
      const change = secretsChange(name, undefined, [{ secret, until: null }], clock());
      await store.commit({ changes: [change], events: [] });
      await this.refresh();
    }
    const { clock } = this.#making;
    const valid = validAt(this.of(name), clock());
    return isOneOf(
      secret,
      valid.map((known) => known.secret),
    );
  }

  refresh(): Promise<void> {
    return this.#follower.run();
  }

  follow(): void {
    if (this.#kept.length === 0) return;
    this.#follower.follow((listener) => this.#store.onChange(senderSecretsTable, listener));
  }

  close(): Promise<void> {
    return this.#follower.close();
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

/** Returns those that are valid at a time (ms since the epoch). */
export function validAt<Each extends Pick<SenderSecret, 'until'>>(
  all: readonly Each[],
  now: number,
): readonly Each[] {
  return all.filter(({ until }) => until === null || now < until);
}

type MakingSecrets = Pick<Services, 'clock' | 'random'> & {
  readonly store: Pick<Store, 'read' | 'commit'>;
};

/**
 * Creates the first secret of a sender whose variable is not set.
 * @returns the secret; undefined if another process created one @throws StoreUnavailable
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
  /** Undefined: a new one is created. */
  readonly secret?: string | undefined;
  /** Milliseconds for which the older secrets stay valid; 0: none. */
  readonly overlapMs: number;
};

/**
 * Rotates a sender's secret (§5.6, §6.7) to a new one, or to one that the sender gave. Older secrets stay valid for the
 * overlap; one that would end sooner still does. The caller checks that the secret may be rotated: secrets of the
 * environment may not, and config/sender-secrets.ts decides if the rule can use a given one.
 *
 * Other processes learn it when the store notifies them, this one after `SenderSecrets.refresh`. @throws
 * StoreUnavailable
 */
export async function rotateSenderSecret(
  { store, clock, random }: MakingSecrets & { readonly store: Pick<Store, 'lines'> },
  name: SecretName,
  { secret = makeEndpointSecret(random), overlapMs }: Rotation,
): Promise<{ readonly secret: string }> {
  return store.lines.change({ table: senderSecretsTable, id: secretsRowId(name) }, async () => {
    const current = await readSenderSecretsRow(store, name);
    const at = clock();
    const secrets = rotatedSecrets(current?.secrets ?? [], secret, at, overlapMs);
    const commit = await tryCommit(store, {
      changes: [secretsChange(name, current, secrets, at)],
      events: [],
    });
    if (commit instanceof Overtaken) return commit;
    return { secret };
  });
}

/** A sender's name contains no slash. */
function secretsRowId({ sender, use }: SecretName): string {
  return use === 'receive' ? sender : `${sender}/forward`;
}

export type KeptSecrets = Pick<Row, 'rev' | 'createdAt' | 'updatedAt'> & SenderSecretsRow;

/** Undefined: no secrets were created yet. */
async function readSenderSecretsRow(
  store: Pick<Store, 'read'>,
  name: SecretName,
): Promise<KeptSecrets | undefined> {
  const row = await store.read(senderSecretsTable, secretsRowId(name));
  if (row === undefined) return undefined;
  const { secrets } = JSON.parse(row.doc) as SenderSecretsRow;
  return { secrets, rev: row.rev, createdAt: row.createdAt, updatedAt: row.updatedAt };
}

/** @param current the row as read; undefined: there was none @param at milliseconds since the epoch */
function secretsChange(
  name: SecretName,
  current: KeptSecrets | undefined,
  secrets: readonly SenderSecret[],
  at: number,
): Change {
  const updatedAt = Math.max(at, current?.updatedAt ?? 0);
  return {
    table: senderSecretsTable,
    id: secretsRowId(name),
    expect: current === undefined ? { absent: true } : { rev: current.rev },
    next: keptRow(JSON.stringify({ secrets }), null, current?.createdAt ?? at, updatedAt),
  };
}
