/** Explains the usual reasons why a server cannot start: what is wrong, and which setting changes it. */
import type { Settings } from '../config/settings.ts';
import { DocumentsUnfit } from '../migrations/document-work.ts';
import { UnfitRows } from '../store/declared-indexes.ts';
import { faultOf } from '../store/sqlite/connection.ts';
import { DamagedStore } from '../store/sqlite/home-state.ts';
import { StoreUnavailable } from '../store/store.ts';
import { databaseFailure } from './database-failure.ts';
import { CommandFailure, exitCodes } from './failure.ts';

const reasons: ReadonlyMap<string, string> = new Map([
  ['EACCES', 'permission denied'],
  ['EPERM', 'operation not permitted'],
  ['EROFS', 'the file system is read-only'],
  ['ENOTDIR', 'part of the path is a file'],
  ['EEXIST', 'it is a file'],
  ['ENOSPC', 'the disk is full'],
  ['EMFILE', 'too many open files'],
]);

/** Returns the error itself if there is no better explanation. */
export function startFailure(error: unknown, settings: Settings): unknown {
  if (!(error instanceof Error)) return error;
  if (error instanceof DocumentsUnfit || error instanceof UnfitRows)
    return new CommandFailure(error.message, { exitCode: exitCodes.unfit, cause: error });
  const damage = error instanceof StoreUnavailable ? error.cause : error;
  if (damage instanceof DamagedStore) {
    return new CommandFailure(damage.message, { exitCode: exitCodes.damaged, cause: error });
  }
  const ofDatabase = databaseFailure(error, settings);
  if (ofDatabase !== undefined) return ofDatabase;
  const { code, syscall } = error as NodeJS.ErrnoException;
  const { host, port, data } = settings;
  if (code === 'EADDRINUSE') {
    const { port: taken = port } = error as { readonly port?: number };
    const setting = taken === port ? 'COMITY_PORT' : 'COMITY_TLS_PORT';
    const message = `port ${taken} on ${host} is already in use; set ${setting} to another, or to 0 for any free one`;
    return new CommandFailure(message, { cause: error });
  }
  if (syscall === 'listen' && code === 'EACCES') {
    return new CommandFailure(`not permitted to listen on port ${port}; set COMITY_PORT to 1024 or more`, {
      cause: error,
    });
  }
  if (syscall === 'listen' && code === 'ENOTSUP') {
    const message = 'sockets of this system cannot share a port: COMITY_PROCESSES must be 1';
    return new CommandFailure(message, { cause: error });
  }
  if (code === 'EADDRNOTAVAIL' || (code === 'ENOTFOUND' && syscall === 'getaddrinfo')) {
    return new CommandFailure(`COMITY_HOST ${host} is not an address of this machine`, { cause: error });
  }
  const reason = isFull(error) ? reasons.get('ENOSPC') : reasonOf(code, syscall);
  if (reason === undefined) return error;
  return new CommandFailure(`the data folder ${data} cannot be used: ${reason}`, { cause: error });
}

function reasonOf(code: string | undefined, syscall: string | undefined): string | undefined {
  return code === undefined || syscall === undefined ? undefined : reasons.get(code);
}

function isFull(error: unknown): boolean {
  const fault = error instanceof StoreUnavailable ? error.fault : faultOf(error);
  return fault === 'storage_full';
}
