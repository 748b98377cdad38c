/**
 * `comity files check` compares the files of the store with the octets in their place, without a server or beside one, and `comity files move`
 * copies all octets to another place.
 */
import { loadSettings, type WrittenSettings } from '../config/load-settings.ts';
import { placeName } from '../files/backup-files.ts';
import {
  checkFiles,
  type FileFault,
  type FilesReport,
  faultsNamedMax,
  removeLeftOvers,
} from '../files/check-files.ts';
import { copyPlace } from '../files/copy-place.ts';
import { type LazyPlace, placeOfSettings } from '../files/open-place.ts';
import { type Place, PlaceFull } from '../files/place.ts';
import { removeDue } from '../files/remove-files.ts';
import { isHeld } from '../hold/hold.ts';
import { openLookingStore, openPlainStore } from '../open-store.ts';
import { type Store, StoreUnavailable } from '../store/store.ts';
import { CommandFailure, exitCodes, usageFailure } from './failure.ts';
import { chosenStore, type Reading, readConfiguration, tellWarnings } from './read-configuration.ts';
import { startFailure } from './start-failure.ts';
import { columns } from './table.ts';
import { isConfirmed, onInterrupt, showStatusLine, type Terminal } from './terminal.ts';

export type CheckFilesFlags = { readonly json: boolean; readonly repair: boolean; readonly yes: boolean };

/** Resolves with 0 if the octets of all files are there as they were, and with 4 if some are missing or damaged. */
export async function checkStoredFiles(
  terminal: Terminal,
  options: WrittenSettings,
  { json, repair, yes }: CheckFilesFlags,
): Promise<number> {
  const { warnings, ...read } = await readConfiguration(terminal.environment, options);
  tellWarnings(terminal, warnings);
  const reading = { ...read, warnings, settings: chosenStore(read.settings, options) };
  const lazy = placeOfSettings(reading.settings);
  const store = await openStoreOf(reading, repair);
  try {
    if (repair && (await isHeld(store)))
      throw new CommandFailure('a restored copy removes nothing before "comity release"');
    const place = await lazy.open();
    const report = await check(terminal, reading, { store, place });
    // A store of another folder would take every file of this place for one without a row.
    if (repair && report.files === 0 && report.left > 0) {
      throw new CommandFailure(
        `the store names no file, and ${placeName(reading.settings)} has ${report.left}: is it the place of this store? If so, remove them by other means`,
      );
    }
    const hasWork = report.left + report.waiting > 0;
    const question = `Remove ${report.left} files without a row from ${placeName(reading.settings)}?`;
    const isRepaired = repair && hasWork && (yes || (await isConfirmed(terminal, question)));
    if (isRepaired) {
      await removeDue({ store, place, settings: reading.settings, clock: Date.now });
      await removeLeftOvers({ store, place });
    }
    const isSound = report.missing + report.damaged === 0;
    if (json) terminal.out(JSON.stringify({ sound: isSound, repaired: isRepaired, ...report }, undefined, 2));
    else tell(terminal, report, isRepaired);
    return isSound ? exitCodes.done : exitCodes.damaged;
  } finally {
    await store.close();
    await lazy.close();
  }
}

/** A repair changes rows, so it opens the embedded store as a server does. */
async function openStoreOf({ configuration, settings }: Reading, repair: boolean): Promise<Store> {
  try {
    const store = await openLookingStore(configuration, settings, ignore);
    if (!repair && store !== undefined) return store;
    await store?.close();
    if (store !== undefined) return await openPlainStore(configuration, settings, ignore);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'store_folder_in_use')
      throw new CommandFailure(`${error.message}: stop the server first`, { cause: error });
    throw startFailure(error, settings);
  }
  throw new CommandFailure(
    `there is no store in ${settings.data}; name its folder with --data or COMITY_DATA`,
  );
}

type Checking = { readonly store: Store; readonly place: Place };

async function check(
  terminal: Terminal,
  { settings }: Reading,
  { store, place }: Checking,
): Promise<FilesReport> {
  const status = showStatusLine(terminal.stderr);
  try {
    return await checkFiles({
      ...{ store, place, lapsedAt: Date.now() - settings.uploadSeconds * 1000 },
      onFile: (files) => status.show(`${files.toLocaleString('en')} files`),
    });
  } finally {
    status.end();
  }
}

const faultTable = columns<FileFault>({ file: 'id', octets: 'what', document: 'document', field: 'field' });

function tell(terminal: Terminal, report: FilesReport, isRepaired: boolean): void {
  const { files, bytes, missing, damaged, faults, left, leftBytes, waiting } = report;
  if (faults.length > 0) terminal.out(faultTable(faults));
  if (missing + damaged > faultsNamedMax)
    terminal.out(`${missing + damaged - faultsNamedMax} more are not shown`);
  terminal.out(`${files} files (${bytes} bytes): ${missing} missing, ${damaged} damaged`);
  const advice = isRepaired ? 'removed' : '--repair removes them';
  if (left > 0) terminal.out(`${left} files without a row (${leftBytes} bytes): ${advice}`);
  if (waiting > 0)
    terminal.out(
      `${waiting} files that no document has: ${isRepaired ? 'removed' : 'a server removes them, or --repair'}`,
    );
}

export type MoveFilesFlags = { readonly json: boolean; readonly to: string };

/** Resolves with 0 when the other place has every file; copies what is missing there, and changes no setting. */
export async function moveFiles(
  terminal: Terminal,
  options: WrittenSettings,
  { json, to }: MoveFilesFlags,
): Promise<number> {
  const { settings } = loadSettings(terminal.environment, {}, options);
  const target = loadSettings({ ...terminal.environment, COMITY_FILES_URL: to }, {}, options).settings;
  if (placeName(settings) === placeName(target))
    throw usageFailure(`--to names the place where the files are: ${to}`);
  const places: readonly LazyPlace[] = [settings, target].map(placeOfSettings);
  const interrupted = new AbortController();
  const forget = onInterrupt(() => {
    interrupted.abort(new CommandFailure('interrupted; run it again to continue'));
  });
  const status = showStatusLine(terminal.stderr);
  let files = 0;
  try {
    const [from, into] = await Promise.all(places.map((place) => place.open()));
    if (from === undefined || into === undefined) throw new Error('there are two places');
    const { copied, bytes, known, damaged, damagedCount } = await copyPlace(from, into, {
      signal: interrupted.signal,
      onCopied: () => {
        files += 1;
        status.show(`${files.toLocaleString('en')} files`);
      },
    });
    for (const key of damaged) terminal.err(`comity: ${key} is damaged, and was not copied`);
    if (json) terminal.out(JSON.stringify({ to, copied, bytes, known, damaged: damagedCount }, undefined, 2));
    else {
      terminal.out(`${copied} files copied (${bytes} bytes), ${known} were there, ${damagedCount} damaged`);
      terminal.out(
        `Stop the servers, run this again for what has come since, and start them with COMITY_FILES_URL=${to}`,
      );
    }
    return damagedCount === 0 ? exitCodes.done : exitCodes.damaged;
  } catch (error) {
    if (error instanceof PlaceFull || error instanceof StoreUnavailable)
      throw new CommandFailure(`${error.message}; run it again to continue`, { cause: error });
    throw error;
  } finally {
    status.end();
    forget();
    for (const place of places) await place.close();
  }
}

function ignore(): void {
  // Nothing is printed about a store that is only looked at.
}
