/**
 * `comity check`: finds every mistake in settings and configuration without starting anything, and says what the documents of the store, if
 * there is one, need before they are served.
 */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { ConfigurationError } from '../config/inspection.ts';
import { type JobTiming, jobTimes } from '../config/jobs.ts';
import { loadSettings, type WrittenSettings } from '../config/load-settings.ts';
import type { Settings } from '../config/settings.ts';
import type { Collection } from '../model/collection.ts';
import { ruleText } from '../model/rule-text.ts';
import { sealOptions } from '../open-store.ts';
import { refuseUnmetNeeds } from '../setting-needs.ts';
import { identify } from '../store/backup-file/file-format.ts';
import { readKeyFile, type SecretKey, sealingKeyOf, unseal } from '../store/secrets/secret-key-ring.ts';
import { quoteName } from '../store/sql-text.ts';
import { installFold } from '../store/sqlite/connection.ts';
import { convertDamage, refuseEmptyFile } from '../store/sqlite/home-state.ts';
import { CommandFailure, exitCodes, usageFailure } from './failure.ts';
import { lookAtStore } from './migrate-documents.ts';
import { chosenStore, type Reading, readConfiguration, tellWarnings } from './read-configuration.ts';
import { startFailure } from './start-failure.ts';
import type { Terminal } from './terminal.ts';

/** Resolves with 0 if there are no mistakes. With `json`, mistakes are printed as JSON too, and the exit code is 2. */
export async function check(terminal: Terminal, options: WrittenSettings, json: boolean): Promise<number> {
  try {
    const reading = await readConfiguration(terminal.environment, options);
    await refuseUnmetNeeds(reading.configuration, reading.settings);
    const documents = await lookAtDocuments(reading);
    if (json) terminal.out(JSON.stringify({ ...reportOf(reading), documents }, undefined, 2));
    else {
      tell(terminal, reading);
      tellDocuments(terminal, documents);
    }
    return exitCodes.done;
  } catch (error) {
    if (!json || !(error instanceof ConfigurationError)) throw error;
    terminal.out(JSON.stringify({ sound: false, mistakes: error.mistakes }, undefined, 2));
    return exitCodes.usage;
  }
}

type DocumentsLook =
  /** A sentence for each collection whose documents may not fit, or have a pending migration. */
  { readonly pending: readonly string[] } | { readonly notLookedAt: string };

/** Codes of stores that this program must not touch, whatever the configuration is. */
const foreign = ['schema_too_new', 'store_unknown_database'];

/** A configuration may be checked where its store cannot be reached. */
async function lookAtDocuments(reading: Reading): Promise<DocumentsLook> {
  try {
    const { lines, duplicates, searches } = await lookAtStore(reading);
    return { pending: [...lines, ...duplicates, ...searches] };
  } catch (error) {
    if (error instanceof Error && 'code' in error && foreign.includes(String(error.code)))
      throw startFailure(error, reading.settings);
    return { notLookedAt: error instanceof Error ? error.message : String(error) };
  }
}

function tellDocuments(terminal: Terminal, documents: DocumentsLook): void {
  if ('notLookedAt' in documents) {
    terminal.err(`comity: the documents in the store were not looked at: ${documents.notLookedAt}`);
    return;
  }
  if (documents.pending.length === 0) return;
  terminal.out('\n  documents in the store');
  for (const sentence of documents.pending) terminal.out(`    ${sentence}`);
}

function reportOf(reading: Reading): Record<string, unknown> {
  const { configuration, settings, warnings } = reading;
  const { title, base, apiVersion, collections } = configuration;
  return {
    sound: true,
    config: settings.config,
    title,
    apiVersion,
    warnings,
    collections: [...collections.values()].map((collection) => ({
      name: collection.name,
      path: `${base}/${collection.name}`,
      fields: [...collection.fields.values()].map(({ name, type }) => ({ name, type })),
      required: [...collection.required],
      access: collection.access,
      rules: Object.fromEntries(rulesOf(collection)),
    })),
    ...functionsOf(reading),
  };
}

/** What runs besides the collections, as `--json` reports it. */
function functionsOf({ configuration, settings, senderSecrets }: Reading) {
  const { actions, base, jobs, mail, senders, subscribers } = configuration;
  const now = Date.now();
  return {
    actions: actions.map(({ name, method, pattern, rule }) => ({
      ...{ name, method, path: `${base}${pattern}`, access: rule, rule: ruleText(rule) },
    })),
    subscribers: [...subscribers.values()].map(({ name, events, orderBy }) => ({
      ...{ name, events, isOrdered: orderBy !== undefined },
    })),
    jobs: [...jobs.values()].map(({ name, timing, ifMissed }) => ({
      ...{ name, ...timing, ifMissed, nextTimes: nextTimes(timing, now) },
    })),
    senders: [...senders.values()].map(({ name, preset, handOn, secretVariable }) => ({
      ...{ name, preset, path: `${base}/webhooks/${name}`, handOn: handOn.kind },
      ...{ secretVariable, hasSecret: senderSecrets.has(secretVariable) },
    })),
    mail: {
      templates: [...mail.templates.keys()],
      // Without its secret parts.
      server: settings.smtpUrl === undefined ? null : new URL(settings.smtpUrl).host,
    },
  };
}

const timesShown = 3;

function nextTimes(timing: JobTiming, from: number): readonly string[] {
  const { after } = jobTimes(timing);
  const times: string[] = [];
  for (let at = after(from); at !== undefined && times.length < timesShown; at = after(at))
    times.push(new Date(at).toISOString());
  return times;
}

function tell(terminal: Terminal, reading: Reading): void {
  const { configuration, settings, warnings } = reading;
  tellWarnings(terminal, warnings);
  terminal.out(`${settings.config} is sound. It would serve "${configuration.title}":`);
  for (const collection of configuration.collections.values()) {
    terminal.out(`\n  ${configuration.base}/${collection.name}`);
    const details = detailsOf(collection);
    const width = Math.max(8, ...details.map(([label]) => label.length));
    for (const [label, text] of details) terminal.out(`    ${label.padEnd(width)} ${text}`);
  }
  for (const [heading, lines] of functionLines(reading)) {
    if (lines.length === 0) continue;
    terminal.out(`\n  ${heading}`);
    for (const line of lines) terminal.out(`    ${line}`);
  }
}

function functionLines(reading: Reading): readonly (readonly [heading: string, lines: readonly string[]])[] {
  const { actions, subscribers, jobs, senders, mail } = functionsOf(reading);
  const server = mail.server === null ? 'no mail server' : `sent by ${mail.server}`;
  const timings = [...reading.configuration.jobs.values()].map(({ timing }) => timingText(timing));
  return [
    ['actions', actions.map(({ method, path, rule }) => `${method} ${path}, ${rule}`)],
    [
      'subscribers',
      subscribers.map(
        ({ name, events, isOrdered }) => `${name}, of ${events.join(', ')}${isOrdered ? ', in order' : ''}`,
      ),
    ],
    [
      'jobs',
      jobs.map(({ name, nextTimes: [next = 'never'] }, index) => `${name}, ${timings[index]}, next ${next}`),
    ],
    [
      'senders',
      senders.map(({ path, preset, handOn, secretVariable, hasSecret }) => {
        const secret = hasSecret ? secretVariable : `${secretVariable} (not set: made at the first start)`;
        return `POST ${path}, ${preset ?? 'own rule'}, ${handOn}, secret ${secret}`;
      }),
    ],
    ['mail templates', mail.templates.map((name) => `${name}, ${server}`)],
  ];
}

function timingText(timing: JobTiming): string {
  if ('cron' in timing) return `${timing.cron} (${timing.timeZone})`;
  return `every ${timing.everyMs / 1000} s`;
}

function detailsOf(collection: Collection): readonly (readonly [label: string, text: string])[] {
  const { fields, references, required } = collection;
  const written = [...fields.values()].filter(
    ({ column, path }) => column === undefined && path.length === 1,
  );
  const details: (readonly [string, string])[] = [
    ['fields', written.map(({ name }) => (required.has(name) ? `${name} (required)` : name)).join(', ')],
    ...rulesOf(collection),
  ];
  for (const { field, collection: target } of references) details.push(['refers', `${field} to ${target}`]);
  return details;
}

/** The rules of the collection and of its members, by what they permit. */
function rulesOf({
  access,
  hidden,
  readOnly,
}: Collection): readonly (readonly [label: string, text: string])[] {
  return [
    ...Object.entries(access),
    ...[...hidden].map(([name, rule]) => [`see ${name}`, rule] as const),
    ...[...readOnly].map(([name, rule]) => [`write ${name}`, rule] as const),
  ].map(([label, rule]) => [label, ruleText(rule)]);
}

// `comity check --store`: makes SQLite check every page and every index of the embedded store, and reads every document
// and every secret, with or without a running server. PostgreSQL checks its own pages.

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
    throw usageFailure(
      'PostgreSQL checks its pages itself: see "SHOW data_checksums" and pg_amcheck; name a folder with --data for an embedded store',
    );
  }
  const path = join(resolve(settings.data), 'comity.db');
  const startedAt = performance.now();
  const { rows, tables, faults } = storeReport(path, settings);
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

function storeReport(path: string, settings: Settings): Report {
  try {
    refuseEmptyFile(path);
    if (!existsSync(path)) {
      throw new CommandFailure(
        `there is no store in ${settings.data}; name its folder with --data or COMITY_DATA`,
      );
    }
    return convertDamage(path, () => {
      const database = new DatabaseSync(path, { timeout: 5000 });
      installFold(database);
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
