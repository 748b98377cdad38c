/** Settings of sent webhooks (§6, §8) and of received ones (§4.14, §8). */
import { refuseMail } from '../refusals.ts';
import { fixed, integer, section, text, toggle } from '../setting.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const minuteS = 60;
const dayS = 86_400;
const yearS = 366 * dayS;

export const webhooksSettings = section('Webhooks out', {
  webhookTimeoutMs: integer(
    { unit: 'ms', default: 15_000, least: 100, most: 30_000 },
    'Time within which a receiver must answer; then the attempt fails.',
  ),
  webhookInFlightMax: integer(
    { unit: 'attempts', default: 512, least: 1, most: 65_536 },
    'Attempts that one process has under way at once. Where several tenants or owners have endpoints, the last eighth is reserved for those that use less than an eighth, so that slow endpoints of one do not stop the others.',
  ),
  webhookEndpointInFlightDefault: fixed(
    { unit: 'attempts', value: 16 },
    'Attempts under way at once to an endpoint without `maxInFlight`.',
  ),
  webhookResendsInFlightMax: fixed(
    { unit: 'attempts', value: 4 },
    'Resends and tests under way at once to one endpoint, besides scheduled attempts. They start at once, regardless of `Retry-After` and earlier failures; further ones wait.',
  ),
  webhookLeaseMs: integer(
    { unit: 'ms', default: 25_000, least: 200, most: 600_000 },
    'Time after which another process on the same database takes over the endpoints of a process that has stopped responding. At least one and a half times `COMITY_WEBHOOK_TIMEOUT_MS`.',
  ),
  webhookContentBytesMax: integer(
    { unit: 'bytes', default: 256 * KiB, least: KiB, most: 16 * MiB },
    'Length of the content of a posted event; then 413.',
  ),
  webhookHttpsRequired: toggle('Refuses endpoints whose URL is not https.'),
  webhookHeadersMax: fixed(
    { unit: 'fields', value: 32 },
    'Header fields that an endpoint may add to its deliveries; then 422.',
  ),
  webhookHeaderCharactersMax: fixed({ unit: 'characters', value: 4096 }, 'Value of such a field; then 422.'),
  webhookRetryAfterSecondsMax: fixed(
    { unit: 'seconds', value: dayS },
    'Longest Retry-After that Comity honours; a longer one is cut to this.',
  ),
  webhookBreakerFailuresMax: fixed(
    { unit: 'failures', value: 10 },
    'Consecutive failures after which Comity pauses an endpoint, and then tries it with one delivery.',
  ),
  webhookBreakerSeconds: fixed(
    { unit: 'seconds', value: 30 },
    'First pause of a failing endpoint; it doubles each time that one delivery fails, up to `webhookBreakerSecondsMax`.',
  ),
  webhookBreakerSecondsMax: fixed(
    { unit: 'seconds', value: 10 * minuteS },
    'Longest pause of a failing endpoint.',
  ),
  webhookSnippetCharactersMax: fixed(
    { unit: 'characters', value: 1024 },
    'Beginning of an answer that is stored with its attempt.',
  ),
  endpointsMax: integer(
    { unit: 'endpoints', default: 100_000, least: 1, most: 10_000_000 },
    'Endpoints of all owners, which each process holds in memory; then 409.',
  ),
  endpointsPerOwnerMax: integer(
    { unit: 'endpoints', default: 1000, least: 1, most: 10_000_000 },
    'Endpoints of one owner; then 409. For administrators, who create endpoints for tenants, only `COMITY_ENDPOINTS_MAX` applies.',
  ),
  endpointWarnSeconds: fixed(
    { unit: 'seconds', value: dayS },
    'Time without a success after which the owner of a failing endpoint is warned.',
  ),
  endpointDisableSeconds: integer(
    { unit: 'seconds', default: 5 * dayS, least: 1, most: yearS },
    'Time without a success after which a failing endpoint is disabled and its owner notified.',
  ),
  operatorMail: text(
    undefined,
    { charactersMax: 254, refuse: refuseMail },
    'Address that receives the mails about endpoints whose owner is not an account, such as those created with the administrator key.',
  ),
  secretOverlapSecondsMax: fixed(
    { unit: 'seconds', value: dayS },
    'Longest time for which a rotated secret may keep signing beside the new one; a longer one is answered 422.',
  ),
  resendSeconds: integer(
    { unit: 'seconds', default: 15 * dayS, least: 1, most: yearS },
    'Age up to which a delivery may be sent again by hand; then 409.',
  ),
  resendCommandLineSeconds: integer(
    { unit: 'seconds', default: 30 * dayS, least: 1, most: yearS },
    'Age up to which a delivery may be sent again from the command line.',
  ),
  deliveryRetentionSeconds: integer(
    { unit: 'seconds', default: 31 * dayS, least: minuteS, most: 10 * yearS },
    'Time for which deliveries and their attempts are kept after their last change.',
  ),
});

export const sendersSettings = section('Webhooks in', {
  receivedBytesMax: integer(
    { unit: 'bytes', default: 25 * MiB, least: 1024, most: 256 * MiB },
    'Body of a message that a sender posts; then 413.',
  ),
  receivedRetentionSeconds: integer(
    { unit: 'seconds', default: 31 * dayS, least: minuteS, most: 10 * yearS },
    'Time for which messages are kept after their last change, and their bodies after their receipt. Comity recognises a repeated message for as long as it keeps the body.',
  ),
  receivedReplayMax: fixed(
    { unit: 'messages', value: 10_000 },
    'Messages that one replay request may put back into the queue; `more` in the answer says that others are left.',
  ),
  handOnInFlightMax: fixed(
    { unit: 'messages', value: 64 },
    'Messages of all senders that one process processes at once.',
  ),
  senderInFlightDefault: integer(
    { unit: 'messages', default: 8, least: 1, most: 1024 },
    'Messages processed at once of a sender without `inFlightMax`.',
  ),
  handlerThreads: integer(
    { unit: 'threads', default: 1, least: 1, most: 64 },
    'Threads that run handlers, started with the first message that needs one.',
  ),
  handlerTimeoutMs: integer(
    { unit: 'ms', default: 30_000, least: 10, most: 3_600_000 },
    'Time for a handler to process a message; then the attempt fails and its writes are dropped.',
  ),
  hookTimeoutMs: integer(
    { unit: 'ms', default: 5000, least: 10, most: 600_000 },
    'Time for a hook of a collection, or for `verify` of a sender; then the request fails with 500, of a sender with 503, and nothing is written.',
  ),
  actionTimeoutMs: integer(
    { unit: 'ms', default: 30_000, least: 10, most: 600_000 },
    'Time for the handler of an action; then the request fails with 500 and nothing is written.',
  ),
  hookDepthMax: fixed(
    { unit: 'hooks', value: 8 },
    'Hooks within hooks: how deep writes of hooks may cause further hooks.',
  ),
  subscriberDepthMax: fixed(
    { unit: 'events', value: 32 },
    'Events of subscribers that lead to one another: how many may follow from one before the next is taken for a loop and fails.',
  ),
  handlerHeapBytesMax: integer(
    { unit: 'bytes', default: 256 * MiB, least: 16 * MiB, most: 16_384 * MiB },
    'Memory of the JavaScript heap of one such thread; Comity replaces a thread that needs more.',
  ),
  handlerChangesMax: integer(
    { unit: 'changes', default: 1000, least: 1, most: 100_000 },
    'Resources that the functions of one unit may write, with the events and mails that they make: of a message, a request.',
  ),
  handlerReadsMax: integer(
    { unit: 'reads', default: 10_000, least: 1, most: 1_000_000 },
    'Reads and lists that the functions of one unit may make.',
  ),
});
