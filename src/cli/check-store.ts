/**
 * `comity check --store`: makes SQLite check every page and every index of the embedded store, and reads every document
 * and every secret, with or without a running server. PostgreSQL checks its own pages.
 */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { loadSettings, type WrittenSettings } from '../config/load-settings.ts';
import type { Settings } from '../config/settings.ts';
import { sealOptions } from '../open-store.ts';
import { identify } from '../store/backup-file/file-format.ts';
import { readKeyFile, type SecretKey, sealingKeyOf, unseal } from '../store/secrets/secret-key-ring.ts';
import { quoteName } from '../store/sql-text.ts';
import { convertDamage, refuseEmptyFile } from '../store/sqlite/home-state.ts';
import { chosenStore } from './chosen-store.ts';
import { CommandFailure, exitCodes } from './failure.ts';
import { startFailure } from './start-failure.ts';
import type { Terminal } from './terminal.ts';

const faultsMax = 100;

type Report = { readonly rows: number; readonly tables: number; readonly faults: readonly string[] };

/** Resolves with 0 if the store is sound, and with 4 if it is damaged. */
export async function checkStore(
  terminal: Terminal,
  options: WrittenSettings,
  json: boolean,
): Promise<number> {
  const settings = chosenStore(loadSettings(terminal.environment, {}, options).settings, options);
  if (settings.databaseUrl !== undefined) {
    throw new CommandFailure(
      'PostgreSQL checks its pages itself: see "SHOW data_checksums" and pg_amcheck; name a folder with --data for an embedded store',
      { exitCode: exitCodes.usage },
    );
  }
  const path = join(resolve(settings.data), 'comity.db');
  const startedAt = performance.now();
  const { rows, tables, faults } = reportOf(path, settings);
  const durationMs = Math.round(performance.now() - startedAt);
  if (json)
    terminal.out(
      JSON.stringify({ sound: faults.length === 0, store: path, rows, tables, faults, durationMs }),
    );
  else if (faults.length === 0)
    terminal.out(`${path} is sound (${rows} rows in ${tables} tables, ${durationMs} ms)`);
  else {
    for (const fault of faults) terminal.err(`comity: ${fault}`);
    terminal.err(`comity: ${path} is damaged: keep a copy of the folder, and restore the last backup`);
  }
  return faults.length === 0 ? exitCodes.done : exitCodes.damaged;
}

function reportOf(path: string, settings: Settings): Report {
  try {
    refuseEmptyFile(path);
    if (!existsSync(path)) {
      throw new CommandFailure(
        `there is no store in ${settings.data}; name its folder with --data or COMITY_DATA`,
      );
    }
    return convertDamage(path, () => {
      const database = new DatabaseSync(path, { timeout: 5000 });
      try {
        database.exec('PRAGMA query_only = ON; BEGIN');
        identify(database, path);
        return contentOf(database, settings);
      } finally {
        database.close();
      }
    });
  } catch (error) {
    throw startFailure(error, settings);
  }
}

function contentOf(database: DatabaseSync, settings: Settings): Report {
  const found = database.prepare(`PRAGMA integrity_check(${faultsMax})`).all();
  const faults = found.map((row) => String(row.integrity_check)).filter((line) => line !== 'ok');
  // SQLite could not read the pages, so reading the documents would fail too.
  if (faults.length > 0) return { rows: 0, tables: 0, faults };
  const keys = keysOf(settings);
  const names = database.prepare('SELECT name FROM comity_counters WHERE n > 0 ORDER BY n').all();
  let rows = 0;
  for (const { name } of names) {
    const table = String(name);
    const documents = database.prepare(`SELECT id, doc, json_valid(doc) AS valid FROM ${quoteName(table)}`);
    for (const { id, doc, valid } of documents.iterate()) {
      rows += 1;
      const fault = valid === 1 ? secretFault(keys, table, String(id), String(doc)) : 'is not JSON';
      if (fault !== undefined && faults.length < faultsMax) faults.push(`${table}/${id} ${fault}`);
    }
  }
  return { rows, tables: names.length, faults };
}

function keysOf(settings: Settings): ReadonlyMap<string, SecretKey> {
  const { given, file } = sealOptions(settings, () => undefined);
  return new Map([...given, ...readKeyFile(file)].map((key) => [key.id, key]));
}

function secretFault(
  keys: ReadonlyMap<string, SecretKey>,
  table: string,
  id: string,
  doc: string,
): string | undefined {
  const keyId = sealingKeyOf(doc);
  if (keyId === undefined) return undefined;
  const key = keys.get(keyId);
  if (key === undefined) return `is encrypted with the key ${keyId}, which is not available`;
  try {
    unseal(key, { table, id }, doc);
    return undefined;
  } catch {
    return `does not decrypt with its key ${keyId}`;
  }
}
