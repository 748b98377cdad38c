/**
 * Request ids: what a 500 answer and its log line share. A random part tells processes apart, a counter the
 * requests of one process. They identify, they do not authorize: guessing one gains nothing.
 */
import { randomBytes } from 'node:crypto';

const prefixBytes = 5;

/** A prefix that two processes share with a chance of 1 in 2^40. */
export function requestIdPrefix(): string {
  return randomBytes(prefixBytes).toString('hex');
}

/** About 60 ns; made only when something asks for it, which an answered read without a debug log never does. */
export function formatRequestId(prefix: string, number: number): string {
  return `${prefix}-${number.toString(36)}`;
}
