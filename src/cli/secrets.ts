/**
 * `comity secrets rotate`: encrypts every secret in the store with another key. Servers on PostgreSQL may keep serving;
 * the embedded store belongs to one process, and a server on it changes the key at start.
 */
import type { WrittenSettings } from '../config/load-settings.ts';
import type { Settings } from '../config/settings.ts';
import { openPlainStore, sealOptions } from '../open-store.ts';
import { readFile } from '../store/backup-file/read-file.ts';
import { rotateSecretKey } from '../store/secrets/sealed-store.ts';
import { keyOfRow, keyRowId, readKeyFile } from '../store/secrets/secret-key-ring.ts';
import { CommandFailure, exitCodes } from './failure.ts';
import { chosenStore, readConfiguration, tellWarnings } from './read-configuration.ts';
import { startFailure } from './start-failure.ts';
import { showStatusLine, type Terminal } from './terminal.ts';

/** Looks at the database that a server may miss. */
const looksMissed = 3;

/** Resolves with 0 when every secret is encrypted with the new key. */
export async function rotateSecrets(
  terminal: Terminal,
  options: WrittenSettings,
  json: boolean,
): Promise<number> {
  const { configuration, settings: all, warnings } = await readConfiguration(terminal.environment, options);
  tellWarnings(terminal, warnings);
  const settings = chosenStore(all, options);
  const store = await openPlainStore(configuration, settings, ignore).catch((error: unknown) => {
    throw inUse(error) ?? startFailure(error, settings);
  });
  const line = showStatusLine(terminal.stderr);
  try {
    const { key, rows } = await rotateSecretKey(store, {
      ...sealOptions(settings, ignore),
      settleMs: looksMissed * settings.databasePollMs,
      onSealed: (rows) => line.show(`Encrypting secrets: ${rows}`),
    });
    line.end();
    if (json) terminal.out(JSON.stringify({ key, rows }));
    else terminal.out(textOf(key, rows, settings));
    return exitCodes.done;
  } finally {
    line.end();
    await store.close();
  }
}

function inUse(error: unknown): CommandFailure | undefined {
  if (!(error instanceof Error) || !('code' in error) || error.code !== 'store_folder_in_use')
    return undefined;
  const message =
    `${error.message}: stop the server first, or start it again with the new key in COMITY_SECRET_KEY and the old one in ` +
    'COMITY_SECRET_KEY_PREVIOUS; it then encrypts the secrets anew';
  return new CommandFailure(message, { cause: error });
}

function textOf(key: string, rows: number, { secretKey, secretKeyPrevious }: Settings): string {
  const done = `${rows} secrets were encrypted anew; all use the key ${key} now.`;
  if (secretKey === undefined) return done;
  if (secretKeyPrevious === undefined) {
    return `${done}\nTo change the key, put a new one into COMITY_SECRET_KEY and this one into COMITY_SECRET_KEY_PREVIOUS.`;
  }
  return `${done}\nServers no longer need COMITY_SECRET_KEY_PREVIOUS. Keep the old key for as long as backups made with it.`;
}

/**
 * Returns the warning of `comity restore` about a file whose secrets are encrypted with an unavailable key.
 * @throws UnfitBackup
 */
export function keyWarnings(file: string, settings: Settings): readonly string[] {
  const { given, file: keyFile, keyTable } = sealOptions(settings, ignore);
  const stored = readFile(file);
  try {
    const table = stored.tables.find(({ name }) => name === keyTable);
    if (table === undefined) return [];
    const row = [...stored.rows(table, ['id', 'doc'])].find(([id]) => id === keyRowId);
    if (row === undefined) return [];
    const { active } = keyOfRow(String(row[1]));
    if ([...given, ...readKeyFile(keyFile)].some(({ id }) => id === active)) return [];
    return [
      `the secrets in ${file} are encrypted with the key ${active}, which is not available: before a server starts on the restored store, ` +
        `set COMITY_SECRET_KEY to it or put its key file at ${keyFile}`,
    ];
  } finally {
    stored.close();
  }
}

function ignore(): void {
  // The command needs no observations of the store.
}
