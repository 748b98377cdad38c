/** The secrets of the senders as verifying and forwarding see them: from the environment, or kept in the store and followed there. */

export type SenderSecret = {
  readonly secret: string;
  /** Milliseconds since the epoch from which on it is none; null: no end is set. */
  readonly until: number | null;
};

/** Which secrets: those that a sender signs with, or that it is forwarded with. */
export type SecretName = { readonly sender: string; readonly use: 'receive' | 'forward' };

export type SenderSecrets = {
  /** The current one first; those that are over may still be there. The very same array while nothing changed. */
  of(name: SecretName): readonly SenderSecret[];
  source(name: SecretName): 'environment' | 'store';
  /** Reads what stands now: after a rotation by this process. */
  refresh(): Promise<void>;
  close(): Promise<void>;
};

/** Secrets that were made at this start, to be shown this once. */
export type MadeSecret = SecretName & { readonly variable: string; readonly secret: string };
