/**
 * Hashes and verifies passwords by argon2id (RFC 9106) with the configured costs, off the event loop (docs/decisions/0021). Verifying
 * without a hash costs the same as with one. Passwords are composed first (NFC, as OpaqueString of RFC 8265 §4.2), so that the same
 * letters from another keyboard are the same password. Nothing is trimmed or case-folded.
 */
import { timingSafeEqual } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { ownEmitter } from '../../observe/own-emitter.ts';
import type { Services } from '../../store/capabilities.ts';
import { StoreUnavailable } from '../../store/store.ts';
import { JobFailed, ThreadPool } from '../../store/thread-pool.ts';
import { workerFile } from '../../store/worker-file.ts';

export type PasswordHasher = {
  /** Returns a PHC string with a new salt. @throws StoreUnavailable if too many hashes are queued or memory ran out */
  hash(password: string): Promise<string>;
  /**
   * Compares the password with the hash. Without a hash, with an unreadable one, and for a password that is longer than any valid one,
   * the result is false after the same work.
   * @throws StoreUnavailable
   */
  verify(password: string, hash: string | null): Promise<boolean>;
  isOutdated(hash: string): boolean;
  waiting(): number;
  /** Refuses queued runs; resolves when the current ones have ended. */
  close(): Promise<void>;
};

/** RFC 9106 §4: 128 bits of salt are sufficient for all uses. */
const saltOctets = 16;
const tagOctets = 32;

/** @param cores processors of the machine */
export function createPasswordHasher({ random, observe, settings }: Services, cores: number): PasswordHasher {
  const { passwordBytesMax, passwordHashesWaitingMax } = settings;
  const costs: Argon2Costs = {
    memoryKibibytes: settings.passwordMemoryKibibytes,
    passes: settings.passwordPasses,
    lanes: 1,
  };
  // Half of the processors remain for requests that need no hash.
  const threadsMax = Math.max(1, Math.floor(cores / 2));
  const threads = createPool(threadsMax, passwordHashesWaitingMax);
  // Hashed in place of a password that cannot match: random, of usual length.
  const decoy = random(saltOctets).toString('hex');

  /** @throws StoreUnavailable if the queue is full, after `close`, and if the thread died or argon2id failed */
  async function derive(job: HashJob, purpose: HashPurpose): Promise<Uint8Array> {
    const { waiting } = threads;
    if (waiting.countOf(purpose) >= passwordHashesWaitingMax) {
      observe({ kind: 'hashing-refused', waiting: waiting.count });
      throw unavailable('too many passwords wait to be hashed');
    }
    const reply = await threads.run(job, purpose).catch(refuse);
    if ('failed' in reply) throw unavailable(`a password could not be hashed: ${reply.failed}`);
    return reply.tag;
  }

  return {
    async hash(password) {
      const salt = random(saltOctets);
      const tag = await derive({ message: octetsOf(password), salt, ...costs, tagOctets }, 'set');
      return formatPhcString({ costs, salt, tag: Buffer.from(tag) });
    },
    async verify(password, text) {
      const known = text === null ? undefined : parsePhcString(text);
      const possible = password.isWellFormed() && octetsOf(password).length <= passwordBytesMax;
      const { salt, tag, costs: by } = known ?? { salt: random(saltOctets), tag: undefined, costs };
      const message = octetsOf(possible ? password : decoy);
      const job = { message, salt, ...by, tagOctets: tag?.length ?? tagOctets };
      const derived = await derive(job, 'compare');
      return tag !== undefined && possible && timingSafeEqual(tag, derived);
    },
    isOutdated(text) {
      const known = parsePhcString(text);
      return (
        known === undefined ||
        known.costs.memoryKibibytes !== costs.memoryKibibytes ||
        known.costs.passes !== costs.passes ||
        known.costs.lanes !== costs.lanes
      );
    },
    waiting: () => threads.waiting.count,
    close: () => threads.close(),
  };
}

function octetsOf(password: string): Buffer {
  return Buffer.from(password.normalize('NFC'), 'utf8');
}

type Argon2Costs = {
  readonly memoryKibibytes: number;
  readonly passes: number;
  readonly lanes: number;
};

type PasswordHash = { readonly costs: Argon2Costs; readonly salt: Buffer; readonly tag: Buffer };

const form =
  /^\$argon2id\$v=19\$m=([1-9][0-9]{0,9}),t=([1-9][0-9]{0,9}),p=([1-9][0-9]{0,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{6,86})$/;

/**
 * Formats a hash as `$argon2id$v=19$m=<KiB>,t=<passes>,p=<lanes>$<salt>$<tag>`: the PHC string format with base64 without padding, as
 * the reference implementation of Argon2 (RFC 9106) writes it. Other functions and versions are not read.
 */
export function formatPhcString({ costs, salt, tag }: PasswordHash): string {
  const { memoryKibibytes, passes, lanes } = costs;
  return `$argon2id$v=19$m=${memoryKibibytes},t=${passes},p=${lanes}$${unpadded(salt)}$${unpadded(tag)}`;
}

/** Returns undefined for any other form; the salt has 8 to 64 octets, the tag 4 to 64. */
export function parsePhcString(text: string): PasswordHash | undefined {
  const match = form.exec(text);
  if (match === null) return undefined;
  const [, memory = '', passes = '', lanes = '', salt = '', tag = ''] = match;
  const hash = {
    costs: { memoryKibibytes: Number(memory), passes: Number(passes), lanes: Number(lanes) },
    salt: Buffer.from(salt, 'base64'),
    tag: Buffer.from(tag, 'base64'),
  };
  // Unused bits of the last character must be zero, and RFC 9106 §3.1 requires 8 KiB for each lane.
  if (unpadded(hash.salt) !== salt || unpadded(hash.tag) !== tag) return undefined;
  return hash.costs.memoryKibibytes >= 8 * hash.costs.lanes ? hash : undefined;
}

function unpadded(octets: Buffer): string {
  return octets.toString('base64').replaceAll('=', '');
}

// Passwords to compare and passwords to set are two parties of one pool, which threads serve in turn, and each has its bound: registrations,
// which have no limit for each account, never fill the queue of logins, and take half of the time at most. A full queue rejects like an
// unavailable store, because clients get the same response: 503 with Retry-After.

/** About the time to process a full queue of the default length. */
const retryAfterSeconds = 5;

type HashPurpose = 'compare' | 'set';

function createPool(threadsMax: number, waitingMax: number): ThreadPool<HashJob, HashReply> {
  return new ThreadPool({
    start(onError) {
      const worker = ownEmitter(new Worker(workerFile('./argon2-thread', import.meta.url)), onError);
      return { worker, end: () => worker.postMessage('close') };
    },
    threadsMax,
    // `derive` refuses a purpose beyond its half.
    waitingMax: 2 * waitingMax,
    leavesOne: false,
  });
}

function refuse(error: unknown): never {
  if (!(error instanceof JobFailed)) throw error;
  throw unavailable(
    error.why === 'ended' ? 'a hashing thread ended' : 'the program is stopping',
    error.cause,
  );
}

function unavailable(message: string, cause?: unknown): StoreUnavailable {
  return new StoreUnavailable(message, { retryAfterSeconds, cause });
}

export type HashJob = {
  readonly message: Uint8Array;
  readonly salt: Uint8Array;
  readonly memoryKibibytes: number;
  readonly passes: number;
  readonly lanes: number;
  readonly tagOctets: number;
};

/** `failed`: argon2id threw, for instance because memory ran out. */
export type HashReply = { readonly tag: Uint8Array } | { readonly failed: string };
