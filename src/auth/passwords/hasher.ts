/**
 * Passwords to hashes and back to yes or no, by argon2id (RFC 9106) with the costs of the settings, off the event loop
 * (docs/decisions/0021). Whoever asks for an account that has no hash pays the same as for one that has.
 *
 * A password is what was typed, composed (NFC, as OpaqueString of RFC 8265 §4.2 has it): the same letters on another keyboard are the
 * same password. Nothing is trimmed or folded.
 */
import { timingSafeEqual } from 'node:crypto';
import type { Observe } from '../../observe/observation.ts';
import type { HashJob } from './hash-job.ts';
import { HashingThreads, type HashPurpose } from './hashing-threads.ts';
import { type Argon2Costs, formatPhcString, parsePhcString } from './phc-string.ts';

export type PasswordHasher = {
  /** A PHC string with a salt of its own. @throws StoreUnavailable when too many wait, or where memory ran out */
  hash(password: string): Promise<string>;
  /**
   * Whether the password is the one that the hash was made of. Without a hash, with one that cannot be read, and for a password that is
   * too long to have been set, the answer is no after the same work. @throws StoreUnavailable
   */
  verify(password: string, hash: string | null): Promise<boolean>;
  /** Whether the hash was made with other costs than those of now, and is to be made anew. */
  isOutdated(hash: string): boolean;
  /** Runs of argon2id that wait for a thread. */
  waiting(): number;
  /** Resolves when what runs has ended; what waits is refused. */
  close(): Promise<void>;
};

export type PasswordHasherOptions = {
  readonly passwordMemoryKibibytes: number;
  readonly passwordPasses: number;
  readonly passwordBytesMax: number;
  readonly passwordHashesWaitingMax: number;
  /** Processors that this process may use. */
  readonly cores: number;
  readonly random: (count: number) => Buffer;
  readonly observe: Observe;
};

/** RFC 9106 §4: 128 bits of salt are sufficient for all uses. */
const saltOctets = 16;
const tagOctets = 32;

export function createPasswordHasher(options: PasswordHasherOptions): PasswordHasher {
  const { passwordBytesMax, passwordHashesWaitingMax, cores, random, observe } = options;
  const costs: Argon2Costs = {
    memoryKibibytes: options.passwordMemoryKibibytes,
    passes: options.passwordPasses,
    lanes: 1,
  };
  // Half of the processors stay with those who already know who they are.
  const threadsMax = Math.max(1, Math.floor(cores / 2));
  const threads = new HashingThreads({ threadsMax, waitingMax: passwordHashesWaitingMax });
  // What is hashed where nothing can match: of a length like others, and known to nobody.
  const decoy = random(saltOctets).toString('hex');

  function derive(job: HashJob, purpose: HashPurpose): Promise<Uint8Array> {
    if (threads.isFull(purpose)) observe({ kind: 'hashing-refused', waiting: threads.waiting });
    return threads.run(job, purpose);
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
    waiting: () => threads.waiting,
    close: () => threads.close(),
  };
}

function octetsOf(password: string): Buffer {
  return Buffer.from(password.normalize('NFC'), 'utf8');
}
