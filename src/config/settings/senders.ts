/** Settings of webhooks that are received (§4.14, §8). */
import { integer, section } from '../setting.ts';

const MiB = 1024 * 1024;
const minuteS = 60;
const dayS = 86_400;
const yearS = 366 * dayS;

export const sendersSettings = section('Webhooks in', {
  receivedBytesMax: integer(
    { unit: 'bytes', default: 25 * MiB, least: 1024, most: 256 * MiB },
    'Body of a message that a sender posts; then 413.',
  ),
  receivedRetentionSeconds: integer(
    { unit: 'seconds', default: 31 * dayS, least: minuteS, most: 10 * yearS },
    'How long messages are kept after their last change, and their bodies after they came. A repetition is known for as long as the body is kept.',
  ),
  receivedReplayMax: integer(
    { unit: 'messages', default: 10_000, least: 1, most: 1_000_000 },
    'Messages that one request to replay may put back; `more` in the answer says that others are left.',
  ),
  handOnInFlightMax: integer(
    { unit: 'messages', default: 64, least: 1, most: 65_536 },
    'Messages that one process hands on at once, of all senders.',
  ),
  senderInFlightDefault: integer(
    { unit: 'messages', default: 8, least: 1, most: 1024 },
    'Messages handed on at once of a sender that does not say `inFlightMax`.',
  ),
  handlerThreads: integer(
    { unit: 'threads', default: 1, least: 1, most: 64 },
    'Threads that handlers run on. They are started with the first message that needs one.',
  ),
  handlerTimeoutMs: integer(
    { unit: 'ms', default: 30_000, least: 10, most: 3_600_000 },
    'Time for a handler to finish a message; then the attempt has failed and what it wrote is dropped.',
  ),
  handlerHeapBytesMax: integer(
    { unit: 'bytes', default: 256 * MiB, least: 16 * MiB, most: 16_384 * MiB },
    'Memory of the JavaScript heap of one such thread; a thread that needs more is ended and another begun.',
  ),
  handlerChangesMax: integer(
    { unit: 'changes', default: 1000, least: 1, most: 100_000 },
    'Resources that a handler may write, and events that it may emit, for one message.',
  ),
  handlerReadsMax: integer(
    { unit: 'reads', default: 10_000, least: 1, most: 1_000_000 },
    'Reads and lists that a handler may make for one message.',
  ),
});
