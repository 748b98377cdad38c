/**
 * Makes the search texts of rows that the declaration of their table did not make: written under an earlier declaration, or by a process
 * that still has it. It works in small transactions beside other writers, never waits for a locked row, and keeps no state of its own: an
 * index lists what is left, so an interrupted run continues.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { indexedText, type SearchIndex } from '../../../model/search/search-index.ts';
import { pendingSql } from '../compile/words.ts';
import { unawaited } from '../connection/call.ts';
import { arrayLiteral } from '../restore/rows.ts';
import type { Layout } from './schema-layout.ts';
import type { Session } from './session.ts';

/** Rows of one transaction, and octets of documents after which it ends. */
const rowsPerBatch = 200;
const octetsPerBatch = 4_194_304;
/** Pause after a batch whose rows others had locked. */
const lockedPauseMs = 50;

/** @param isRecorded a condition in SQL without which it ends @returns the number of rows made */
export async function fillSearch(
  session: Session,
  { name, table: { words } }: Pick<Layout, 'name' | 'table'>,
  { isRecorded = 'true' }: { readonly isRecorded?: string } = {},
): Promise<number> {
  if (words === undefined) return 0;
  let made = 0;
  for (;;) {
    const read = await pendingRows(session, name, words, isRecorded);
    if (read.length === 0) return made;
    const written = await write(session, name, words, read);
    made += written;
    if (written === 0) await pause(lockedPauseMs);
  }
}

type PendingRow = { readonly id: string; readonly rev: number; readonly doc: string };

async function pendingRows(
  session: Session,
  name: string,
  { mark }: SearchIndex,
  isRecorded: string,
): Promise<readonly PendingRow[]> {
  const listed = await session.rows(
    `SELECT id, octet_length(doc) FROM ${name} WHERE ${pendingSql(mark)} AND ${isRecorded} LIMIT ${rowsPerBatch}`,
  );
  let octets = 0;
  const ids: string[] = [];
  for (const [id, length] of listed) {
    ids.push(String(id));
    octets += Number(length);
    if (octets > octetsPerBatch) break;
  }
  if (ids.length === 0) return [];
  const rows = await session.rows(`SELECT id, rev, doc FROM ${name} WHERE id = ANY ($1::text[])`, [
    arrayLiteral(ids),
  ]);
  return rows.map(([id, rev, doc]) => ({ id: String(id), rev: Number(rev), doc: String(doc) }));
}

/** The revision stays, because the document is the same; a row that changed meanwhile is left. */
async function write(
  session: Session,
  name: string,
  words: SearchIndex,
  rows: readonly PendingRow[],
): Promise<number> {
  const texts = rows.map(({ doc }) =>
    indexedText(words, JSON.parse(doc) as Readonly<Record<string, unknown>>),
  );
  const changed = await session.rows(
    `UPDATE ${name} AS t SET search = free.search FROM (
       SELECT r.ctid AS place, made.search FROM unnest($1::text[], $2::bigint[], $3::text[]) AS made (id, rev, search)
       JOIN ${name} AS r ON r.id = made.id AND r.rev = made.rev FOR UPDATE OF r SKIP LOCKED
     ) AS free, ${unawaited} WHERE t.ctid = free.place RETURNING 1`,
    [arrayLiteral(rows.map(({ id }) => id)), arrayLiteral(rows.map(({ rev }) => rev)), arrayLiteral(texts)],
  );
  return changed.length;
}
