/** Explains the usual reasons why a server cannot start: what is wrong, and which setting changes it. */
import type { Settings } from '../config/settings.ts';
import { DocumentsUnfit } from '../migrations/document-work.ts';
import { UnfitRows } from '../store/declared-indexes.ts';
import { type Address, addressOf, describe } from '../store/postgres/connection/address.ts';
import {
  DatabaseFailed,
  messageOf,
  SchemaBusy,
  SchemaOutdated,
  SchemaTooNew,
  sqlState,
  UnfitServer,
} from '../store/postgres/postgres-failure.ts';
import { faultOf } from '../store/sqlite/connection.ts';
import { DamagedStore } from '../store/sqlite/home-state.ts';
import { StoreUnavailable } from '../store/store.ts';
import { CommandFailure, exitCodes, usageFailure } from './failure.ts';

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

// Explains in one line why PostgreSQL cannot be used: which database, what is wrong, and what to do. It decides by
// codes, since servers translate their messages. It never prints the URL, which may contain a password.

/** @returns undefined if the database is not the cause */
export function databaseFailure(error: unknown, settings: Settings): CommandFailure | undefined {
  const { databaseUrl } = settings;
  if (databaseUrl === undefined) return undefined;
  const address = addressOrMistake(databaseUrl);
  if (address instanceof CommandFailure) return address;
  const where = `PostgreSQL at ${describe(address)}`;
  const say = (text: string): CommandFailure => new CommandFailure(`${where} ${text}`, { cause: error });
  if (error instanceof SchemaOutdated) return say(`is not ready: ${error.message}; run "comity migrate"`);
  if (error instanceof SchemaTooNew)
    return say(`is too new for this program: ${error.message}; run the newer program`);
  if (error instanceof SchemaBusy) return say(`could not be migrated: ${error.message}`);
  if (error instanceof UnfitServer) return say(`cannot be used: ${error.message}`);
  if (error instanceof DatabaseFailed)
    return say(`cannot be used: ${databaseReason(error.cause, address, settings)}`);
  if (error instanceof StoreUnavailable) {
    return say(
      `cannot be used: ${error.cause === undefined ? error.message : databaseReason(error.cause, address, settings)}`,
    );
  }
  return sqlState(error) === undefined
    ? undefined
    : say(`cannot be used: ${databaseReason(error, address, settings)}`);
}

/** Returns the address, or the failure that explains what is wrong with the URL. */
export function addressOrMistake(databaseUrl: string): Address | CommandFailure {
  try {
    return addressOf(databaseUrl);
  } catch (error) {
    return usageFailure(`COMITY_DATABASE_URL: ${messageOf(error)}`, error);
  }
}

function databaseReason(cause: unknown, address: Address, settings: Settings): string {
  const state = sqlState(cause);
  if (state !== undefined) return serverReason(state, messageOf(cause), address, settings);
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const known = connectReason(code, address, settings);
  if (known !== undefined) return known;
  // pg reports a missing password without a code.
  return messageOf(cause).startsWith('SASL') ? passwordMissing(address) : messageOf(cause);
}

function passwordMissing(address: Address): string {
  return `it requires a password; set the one of ${userOf(address)} in COMITY_DATABASE_URL or PGPASSWORD`;
}

/** By SQLSTATE (PostgreSQL, appendix A). */
function serverReason(state: string, message: string, address: Address, settings: Settings): string {
  switch (state) {
    case '28P01':
      if (address.password === undefined) return passwordMissing(address);
      return `the password of ${userOf(address)} is wrong, or there is no such user; correct COMITY_DATABASE_URL`;
    case '28000':
      return `it refuses ${userOf(address)} (${message}); correct the user in COMITY_DATABASE_URL, the server's pg_hba.conf, or TLS with ?sslmode=require`;
    case '3D000':
      return `there is no such database; create it with "createdb --encoding=UTF8 ${address.database}", or correct COMITY_DATABASE_URL`;
    case '42501':
      return `${userOf(address)} lacks a privilege (${message}); grant it, or run this as the owner of the schema "${settings.databaseSchema}"`;
    case '53300':
      return (
        'it takes no more connections; raise its max_connections, or lower COMITY_DATABASE_READ_CONNECTIONS ' +
        `(${settings.databaseReadConnections}) or COMITY_DATABASE_SCAN_CONNECTIONS (${settings.databaseScanConnections})`
      );
    case '57P03':
      return 'it is starting or shutting down; try again when it is up';
    default:
      return `${message} (SQLSTATE ${state})`;
  }
}

/** By the code of the socket, the name service or TLS. */
function connectReason(code: string, address: Address, settings: Settings): string | undefined {
  const correct = 'correct the host and port in COMITY_DATABASE_URL';
  switch (code) {
    case 'ECONNREFUSED':
    case 'ENOENT':
      return `nothing listens there; start it, or ${correct}`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `the name ${address.host} has no address; ${correct}`;
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return `no network route leads there; ${correct}`;
    case 'ETIMEDOUT':
      return `no connection within ${settings.databaseConnectTimeoutMs} ms (COMITY_DATABASE_CONNECT_TIMEOUT_MS); ${correct}, or the firewall between`;
    case 'ECONNRESET':
    case 'ECONNCLOSED':
    case 'EPIPE':
      return `the server there closes the connection, so it may not be PostgreSQL; ${correct}`;
    case 'ENOTLS':
      return 'it does not speak TLS, which sslmode in COMITY_DATABASE_URL requires; turn ssl on in the server, or change sslmode';
    case 'ENOBINDING':
      return 'it offers no channel binding, which COMITY_DATABASE_URL requires; leave channel_binding=require out';
    case 'CERT_HAS_EXPIRED':
      return 'its certificate has expired; renew it';
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return `its certificate is not for the name ${address.host}; correct the host in COMITY_DATABASE_URL, or use sslmode=verify-ca`;
    default:
      if (unknownIssuers.has(code)) {
        return 'its certificate comes from an unknown authority; name the file of that authority with ?sslrootcert= in COMITY_DATABASE_URL';
      }
      return code.startsWith('ERR_SSL') || code === 'EPROTO' ? `TLS failed (${code})` : undefined;
  }
}

const unknownIssuers: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

function userOf({ user }: Address): string {
  return user === undefined ? 'the user' : `user ${user}`;
}
