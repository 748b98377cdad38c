/** Which endpoints this process sends for. Every endpoint lies in one of a fixed number of lanes, and each lane is one process's. */

export type Lanes = {
  /**
   * Whether this process sends for the endpoint, and will until an attempt that begins now is over whatever happens to its lease.
   */
  owns(endpointId: string): boolean;
  /** Something besides endpoints has to be done in lanes: asks for some, where that was not done before. */
  need(): void;
  /** An attempt to the endpoint begins: its lane is not handed on in good order before `release`. */
  hold(endpointId: string): void;
  /** The attempt is written down, or given up. */
  release(endpointId: string): void;
  /** Calls back after lanes came or went. Returns the way to stop. */
  onChange(listener: () => void): () => void;
  /** Gives all lanes back, so that others need not wait for the leases to end. */
  close(): Promise<void>;
};
