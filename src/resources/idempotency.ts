/**
 * Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07). The first request with a key claims it durably;
 * its result is stored in the same unit as the change it made, so there is no moment at which one is there
 * without the other. A later request with the key gets the stored result, and the graph makes the same answer of it.
 *
 * A record is `claimed` or `settled`. A claim whose process died settled nothing, hence wrote nothing: it may be
 * taken over after `claimSeconds`. Keys are private to their principal.
 */
import { hash } from 'node:crypto';
import type { Problem } from '../http/problem.ts';
import { parseIdempotencyKey } from '../http/syntax/idempotency-key.ts';
import { audienceOf } from '../model/principal.ts';
import { keptRow } from '../store/kept-row.ts';
import type { Change, NextRow, Row, Store } from '../store/store.ts';
import type { Ask, Companion, Made } from './resource.ts';

export const idempotencyTable = 'idempotency_keys';

/** A claim older than this belongs to a process that is gone; no request is allowed to run that long. */
export const claimSeconds = 120;

export type Settled = { readonly made: Made; readonly rev: number } | { readonly refused: Problem };

export type Claim = {
  readonly status: 'first';
  readonly companion: Companion;
  /** Frees the key, or settles it with the store's refusal. */
  release(refused: Problem | undefined): Promise<void>;
};

export type Idempotency = {
  claim(
    ask: Ask,
    fingerprint: string,
  ): Promise<Claim | { status: 'replay'; result: Settled } | { status: 'running' } | { status: 'other' }>;
};

type Record_ = {
  readonly fingerprint: string;
  readonly result: { made: Made } | { refused: Problem } | null;
};

/** What makes two requests the same: method, target and content. */
export function fingerprintOf(ask: Ask, content: Uint8Array): string {
  const head = `${ask.request.method}\n${ask.request.target}\n${ask.request.fields.contentType ?? ''}\n`;
  return hash('sha256', `${hash('sha256', head, 'hex')}${hash('sha256', content, 'hex')}`, 'base64url');
}

/** @param lifetimeSeconds how long a key is remembered; what the store keeps beyond that, until it is purged, counts no more */
export function createIdempotency(store: Store, lifetimeSeconds = Number.POSITIVE_INFINITY): Idempotency {
  return {
    async claim(ask, fingerprint) {
      const key = parseIdempotencyKey(ask.request.fields.idempotencyKey ?? '') ?? '';
      const id = hash('sha256', `${audienceOf(ask.principal)}\n${key}`, 'base64url');
      const found = await store.read(idempotencyTable, id);
      if (found !== undefined && !isStale(found, ask.now, lifetimeSeconds)) return judge(found, fingerprint);
      const row = recordRow({ fingerprint, result: null }, ask.now, ask.now);
      const expect = found === undefined ? ({ absent: true } as const) : { rev: found.rev };
      const commit = await store.commit({
        changes: [{ table: idempotencyTable, id, expect, next: row }],
        events: [],
      });
      if (commit.outcome !== 'committed') {
        const current = await store.read(idempotencyTable, id);
        return current === undefined ? { status: 'running' } : judge(current, fingerprint);
      }
      return claimed(store, id, commit.rev, fingerprint, ask.now);
    },
  };
}

function claimed(store: Store, id: string, rev: number, fingerprint: string, now: number): Claim {
  const settle = (result: { made: Made } | { refused: Problem }): Change => ({
    table: idempotencyTable,
    id,
    expect: { rev },
    next: recordRow({ fingerprint, result }, now, now),
  });
  return {
    status: 'first',
    companion: (made) => settle({ made }),
    release: async (refused) => {
      const change: Change =
        refused === undefined
          ? { table: idempotencyTable, id, expect: { rev }, next: null }
          : settle({ refused });
      await store.commit({ changes: [change], events: [] });
    },
  };
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

function isStale(row: Row, now: number, lifetimeSeconds: number): boolean {
  if (now - row.updatedAt > lifetimeSeconds * 1000) return true;
  return now - row.updatedAt > claimSeconds * 1000 && (JSON.parse(row.doc) as Record_).result === null;
}

function recordRow(record: Record_, createdAt: number, updatedAt: number): NextRow {
  return keptRow(JSON.stringify(record), null, createdAt, updatedAt);
}
