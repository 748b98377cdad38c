/** Settings of the limits on how often a caller may ask (§7, §8), and on the memory that all may take together. */
import { integer, section } from '../setting.ts';

export const memorySettings = section('Memory', {
  memoryBytesMax: integer(
    { unit: 'bytes', default: 0, least: 0, most: 1_000_000_000_000 },
    'Memory for everything under way: content being received, answers not yet taken, events on their way. Beyond it 503, an eighth is left to administrators, and streams wait. 0 takes a fourth of what the control group or the machine has, and at most half of the heap; other values are at least 16 MiB.',
  ),
  memorySharePercentMax: integer(
    { unit: '%', default: 50, least: 1, most: 100 },
    'Part of that memory that one principal, or an address without one, may take.',
  ),
});

export const limitsSettings = section('Rate limits', {
  rateLimitReads: integer(
    { unit: 'requests/min', default: 6000, least: 0, most: 1_000_000_000 },
    'GET, HEAD and QUERY requests that a principal, or an address without one, may make in a minute; then 429. 0 sets no limit.',
  ),
  rateLimitWrites: integer(
    { unit: 'requests/min', default: 3000, least: 0, most: 1_000_000_000 },
    'Requests with other methods that a principal, or an address without one, may make in a minute; then 429. 0 sets no limit.',
  ),
  rateLimitSyncMs: integer(
    { unit: 'ms', default: 250, least: 10, most: 60_000 },
    'Time after which processes on one database tell each other what they counted; what they admit meanwhile may exceed the limit.',
  ),
  rateLimitKeysMax: integer(
    { unit: 'callers', default: 25_000, least: 16, most: 10_000_000 },
    'Principals and addresses counted in a minute, each for reads and for writes; a further one takes the place of one that asked little, or else shares one count with others that found none.',
  ),
});
