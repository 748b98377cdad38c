/** The time that is signed with a message, and how far it may be from now (§5.6, §8): what keeps an old message from being sent again. */

export type TimeWindow = {
  /** How many seconds the signed time may lie behind or ahead; 300 if not said, 0 for any time. */
  readonly toleranceSeconds?: number | undefined;
  /** Milliseconds since the epoch; the runtime's clock if not said. */
  readonly nowMs?: number | undefined;
};

export const toleranceSecondsDefault = 300;

/** Twelve digits reach beyond the year 30,000. */
const digitsMax = 12;

/** Unix seconds in decimal digits; undefined for anything else. */
export function readTimestamp(text: string): number | undefined {
  if (text.length === 0 || text.length > digitsMax) return undefined;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x30 || code > 0x39) return undefined;
  }
  return Number(text);
}

/** Unix seconds of a moment, now if none is given. @throws TypeError for what is no whole number of seconds */
export function timestampOf(seconds: number = Math.floor(Date.now() / 1000)): number {
  if (readTimestamp(String(seconds)) === undefined) {
    throw new TypeError('a timestamp must be a whole number of seconds since the epoch');
  }
  return seconds;
}

/**
 * What is wrong with the signed time; undefined: nothing.
 * @throws TypeError for a tolerance that would compare as nothing does
 */
export function refuseTime(timestamp: number, window: TimeWindow): 'stale' | 'ahead' | undefined {
  const { toleranceSeconds = toleranceSecondsDefault, nowMs = Date.now() } = window;
  if (!(toleranceSeconds >= 0) || !Number.isFinite(nowMs)) {
    throw new TypeError('toleranceSeconds and nowMs must be numbers, the tolerance not negative');
  }
  if (toleranceSeconds === 0) return undefined;
  const age = Math.floor(nowMs / 1000) - timestamp;
  if (age > toleranceSeconds) return 'stale';
  return -age > toleranceSeconds ? 'ahead' : undefined;
}
