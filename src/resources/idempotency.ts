/**
 * Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07). The first request with a key claims it durably;
 * its result is stored in the same unit as the change it made, so there is no moment at which one is there
 * without the other. A later request with the key gets the stored result, and the graph makes the same answer of it.
 * Keys are private to their principal. What a key goes through stands at `Record_`.
 */
import { hash } from 'node:crypto';
import type { Problem } from '../http/problem.ts';
import { parseIdempotencyKey } from '../http/syntax/idempotency-key.ts';
import { audienceOf, callerOf } from '../model/principal.ts';
import { keptRow } from '../store/kept-row.ts';
import {
  type Change,
  type Commit,
  type NextRow,
  type Row,
  type Store,
  StoreUnavailable,
} from '../store/store.ts';
import type { Ask, Companion, Made } from './resource.ts';
import { UnsettledKeys } from './unsettled-keys.ts';

export const idempotencyTable = 'idempotency_keys';

/** A claim older than this belongs to a process that is gone; no request is allowed to run that long. */
export const claimSeconds = 120;

export type Settled = { readonly made: Made; readonly rev: number } | { readonly refused: Problem };

export type Claim = {
  readonly status: 'first';
  readonly companion: Companion;
  /** Frees the key, or settles it with the store's refusal; later, where the store does not answer now. */
  release(refused: Problem | undefined): Promise<void>;
};

export type Idempotency = {
  /** @throws StoreUnavailable */
  claim(
    ask: Ask,
    fingerprint: string,
  ): Promise<Claim | { status: 'replay'; result: Settled } | { status: 'running' } | { status: 'other' }>;
};

export type IdempotencyOptions = {
  readonly store: Store;
  readonly clock: () => number;
  /** Tells the claims of a key apart. */
  readonly newId: () => string;
  /** How long a key is remembered; what the store keeps beyond that, until it is purged, counts no more. */
  readonly lifetimeSeconds: number;
};

/**
 * What is known of a key.
 *
 *   free     no record, or one whose time is over: a request claims it, and of several that try at once one does
 *   claimed  by a request under way, which names the record's revision in the unit that settles it; others are told 409
 *   settled  with the result, which every later request gets until the key's time is over
 *
 *   free -> claimed     the claim, a unit of its own
 *   claimed -> settled  with the change itself, or with the store's refusal of it (a unique value taken, and the like)
 *   claimed -> free     the request was refused before the store was asked, lost every race, or failed
 *   claimed -> claimed  by another request after `claimSeconds`: whose process died settled nothing, hence wrote
 *                       nothing. One that was merely slow names a revision that no longer stands, so its change is refused
 *
 * After a failure of the store nobody knows whether the last unit was made. What puts the record right (unsettled-keys.ts) then goes on
 * in the background until the store answers: it frees the claim if the unit was not made, and changes nothing if it
 * was. So the client's next try is the first or gets the true result, and is told 409 for moments at most.
 */
type Record_ = {
  readonly fingerprint: string;
  readonly claim: string;
  readonly result: { made: Made } | { refused: Problem } | null;
};

/** What makes two requests the same: method, target, content, and what whoever asks may see of the answer. */
export function fingerprintOf(ask: Ask, content: Uint8Array): string {
  const head = `${ask.request.method}\n${ask.request.target}\n${ask.request.fields.contentType ?? ''}\n${audienceOf(ask.principal)}\n`;
  return hash('sha256', `${hash('sha256', head, 'hex')}${hash('sha256', content, 'hex')}`, 'base64url');
}

export function createIdempotency(options: IdempotencyOptions): Idempotency {
  const { store, clock } = options;
  const unsettled = new UnsettledKeys(clock, claimSeconds * 1000);
  return {
    async claim(ask, fingerprint) {
      const key = parseIdempotencyKey(ask.request.fields.idempotencyKey ?? '') ?? '';
      const id = hash('sha256', `${callerOf(ask.principal)}\n${key}`, 'base64url');
      await unsettled.finish(id);
      const found = await store.read(idempotencyTable, id);
      const now = clock();
      if (found !== undefined && !isOver(found, now, options.lifetimeSeconds))
        return judge(found, fingerprint);
      const claiming: Claiming = { store, id, fingerprint, name: options.newId(), at: now, unsettled };
      const expect = found === undefined ? ({ absent: true } as const) : { rev: found.rev };
      const commit = await store.commit(claimUnit(claiming, expect)).catch((error) => {
        // Whether the key is ours now nobody knows, and nobody will settle it.
        if (error instanceof StoreUnavailable) unsettled.add(id, () => forgetClaim(claiming));
        throw error;
      });
      if (commit.outcome === 'committed') return claimed(claiming, commit.rev);
      const current = commit.outcome === 'superseded' ? commit.current : undefined;
      return current === undefined ? { status: 'running' } : judge(current, fingerprint);
    },
  };
}

type Claiming = {
  readonly store: Store;
  readonly id: string;
  readonly fingerprint: string;
  /** Of this claim alone. */
  readonly name: string;
  readonly at: number;
  readonly unsettled: UnsettledKeys;
};

function claimed(claiming: Claiming, rev: number): Claim {
  const { store, id, unsettled } = claiming;
  const change = (result: Record_['result'] | undefined): Change => ({
    table: idempotencyTable,
    id,
    expect: { rev },
    next: result === undefined ? null : recordRow(claiming, result),
  });
  return {
    status: 'first',
    companion: (made) => change({ made }),
    release: (refused) => {
      const unit = { changes: [change(refused === undefined ? undefined : { refused })], events: [] };
      // Superseded: the unit before was made after all, or somebody took the claim over. Either way the record is right.
      return unsettled.settle(id, () => store.commit(unit));
    },
  };
}

function claimUnit(claiming: Claiming, expect: Change['expect']) {
  const next = recordRow(claiming, null);
  return { changes: [{ table: idempotencyTable, id: claiming.id, expect, next }], events: [] };
}

/**
 * Frees a key that a claim may have taken. Asked by a claim once more, not by a read: units are made one
 * after the other, so the first one has been made by then, or never is.
 */
async function forgetClaim(claiming: Claiming): Promise<void> {
  const { store, id, name } = claiming;
  const commit = await store.commit(claimUnit(claiming, { absent: true }));
  const rev = ourRevision(commit, name);
  if (rev === undefined) return;
  await store.commit({ changes: [{ table: idempotencyTable, id, expect: { rev }, next: null }], events: [] });
}

/** The revision of the record where this claim stands in it. */
function ourRevision(commit: Commit, name: string): number | undefined {
  if (commit.outcome === 'committed') return commit.rev;
  if (commit.outcome !== 'superseded' || commit.current === undefined) return undefined;
  return (JSON.parse(commit.current.doc) as Record_).claim === name ? commit.current.rev : undefined;
}

function judge(
  row: Row,
  fingerprint: string,
): { status: 'replay'; result: Settled } | { status: 'running' } | { status: 'other' } {
  const record = JSON.parse(row.doc) as Record_;
  if (record.fingerprint !== fingerprint) return { status: 'other' };
  if (record.result === null) return { status: 'running' };
  // The unit that settled the record is the one that made the change, so both have the same rev.
  const result = 'made' in record.result ? { made: record.result.made, rev: row.rev } : record.result;
  return { status: 'replay', result };
}

/** A claim is not forgotten while its request may run, however short the time is that keys are remembered. */
function isOver(row: Row, now: number, lifetimeSeconds: number): boolean {
  const age = now - row.updatedAt;
  if (age <= claimSeconds * 1000 && age <= lifetimeSeconds * 1000) return false;
  const isClaim = (JSON.parse(row.doc) as Record_).result === null;
  return age > (isClaim ? claimSeconds : lifetimeSeconds) * 1000;
}

function recordRow({ fingerprint, name, at }: Claiming, result: Record_['result']): NextRow {
  const record: Record_ = { fingerprint, claim: name, result };
  return keptRow(JSON.stringify(record), null, at, at);
}
