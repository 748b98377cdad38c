/**
 * The memory of all relays of a process. Every read goes into one and the same place, because a turn of the event loop that reads also copies
 * what it read to a stage and writes that, before anything else is read. A stage that the kernel took whole is free at once; only where a
 * client or destination is slow it stays with that one relay until it is written. So idle tunnels hold nothing.
 */

/** Lengths of reads and stages. The larger is for relays that fill the smaller. */
export const readBytesMin = 64 * 1024;
export const readBytesMax = 256 * 1024;

const stageBytes = [4 * 1024, readBytesMin, readBytesMax] as const;
/** Stages of each length that wait to be used again; more are left to the collector. */
const sparesMax = 8;

export type RelayMemory = {
  /** Where reads go: the first octets of one place. */
  readonly small: Uint8Array;
  readonly large: Uint8Array;
  /** A stage with the first octets of what was read. */
  readonly stage: (bytes: number) => Uint8Array;
  readonly giveBack: (stage: Uint8Array) => void;
};

export function createRelayMemory(): RelayMemory {
  const large = Buffer.allocUnsafeSlow(readBytesMax);
  const spares = new Map<number, Uint8Array[]>(stageBytes.map((length) => [length, []]));
  return {
    small: large.subarray(0, readBytesMin),
    large,
    stage(bytes) {
      const length = stageBytes.find((each) => each >= bytes) ?? readBytesMax;
      const stage = spares.get(length)?.pop() ?? Buffer.allocUnsafeSlow(length);
      large.copy(stage, 0, 0, bytes);
      return stage;
    },
    giveBack(stage) {
      const kept = spares.get(stage.length);
      if (kept !== undefined && kept.length < sparesMax) kept.push(stage);
    },
  };
}
