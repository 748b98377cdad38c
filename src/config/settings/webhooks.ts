/** Settings of webhooks that are sent (§6, §8). */
import { refuseMail } from '../refusals.ts';
import { integer, section, text, toggle } from '../setting.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const minuteS = 60;
const hourS = 3600;
const dayS = 86_400;
const yearS = 366 * dayS;

export const webhooksSettings = section('Webhooks out', {
  webhookTimeoutMs: integer(
    { unit: 'ms', default: 15_000, least: 100, most: 30_000 },
    'Time in which a receiver must answer; then the attempt has failed.',
  ),
  webhookInFlightMax: integer(
    { unit: 'attempts', default: 512, least: 1, most: 65_536 },
    'Attempts that one process has under way at once. Where several tenants or owners have endpoints, the last eighth is for those that have less than an eighth, so that endpoints of one that hang do not stop another.',
  ),
  webhookEndpointInFlightDefault: integer(
    { unit: 'attempts', default: 16, least: 1, most: 1024 },
    'Attempts under way at once to an endpoint that does not say `maxInFlight`.',
  ),
  webhookResendsInFlightMax: integer(
    { unit: 'attempts', default: 4, least: 1, most: 1024 },
    'Resends and tests under way at once to one endpoint, besides the attempts by schedule. They begin at once, whatever `Retry-After` or failures say; further ones wait for an end of these.',
  ),
  webhookLeaseMs: integer(
    { unit: 'ms', default: 25_000, least: 200, most: 600_000 },
    'Time after which another process on the same database takes over the endpoints of one that is silent. At least one and a half times `COMITY_WEBHOOK_TIMEOUT_MS`.',
  ),
  webhookContentBytesMax: integer(
    { unit: 'bytes', default: 256 * KiB, least: KiB, most: 16 * MiB },
    'Content of an event that is posted; then 413.',
  ),
  webhookHttpsRequired: toggle('Refuses endpoints whose URL is not https.'),
  webhookHeadersMax: integer(
    { unit: 'fields', default: 32, least: 0, most: 256 },
    'Header fields that an endpoint may add to its deliveries; then 422.',
  ),
  webhookHeaderCharactersMax: integer(
    { unit: 'characters', default: 4096, least: 16, most: 65_536 },
    'Value of such a field; then 422.',
  ),
  webhookRetryAfterSecondsMax: integer(
    { unit: 'seconds', default: dayS, least: 1, most: 30 * dayS },
    'Longest Retry-After of a receiver that is honoured; a longer one is cut to this.',
  ),
  webhookBreakerFailuresMax: integer(
    { unit: 'failures', default: 10, least: 1, most: 10_000 },
    'Failures in a row after which an endpoint is left alone for a while, and then tried with one delivery.',
  ),
  webhookBreakerSeconds: integer(
    { unit: 'seconds', default: 30, least: 1, most: hourS },
    'How long it is left alone at first; twice as long each time the one delivery fails, up to `COMITY_WEBHOOK_BREAKER_SECONDS_MAX`.',
  ),
  webhookBreakerSecondsMax: integer(
    { unit: 'seconds', default: 10 * minuteS, least: 1, most: dayS },
    'How long it is left alone at most.',
  ),
  webhookSnippetCharactersMax: integer(
    { unit: 'characters', default: 1024, least: 0, most: 64 * KiB },
    'Beginning of an answer that the log of attempts keeps.',
  ),
  endpointsMax: integer(
    { unit: 'endpoints', default: 100_000, least: 1, most: 10_000_000 },
    'Endpoints of all owners, which each process holds in memory; then 409.',
  ),
  endpointsPerOwnerMax: integer(
    { unit: 'endpoints', default: 1000, least: 1, most: 10_000_000 },
    'Endpoints of one owner; then 409. Administrators, who make endpoints for tenants, are bound by `COMITY_ENDPOINTS_MAX` alone.',
  ),
  endpointWarnSeconds: integer(
    { unit: 'seconds', default: dayS, least: 1, most: yearS },
    'Time without a success after which the owner of a failing endpoint is warned.',
  ),
  endpointDisableSeconds: integer(
    { unit: 'seconds', default: 5 * dayS, least: 1, most: yearS },
    'Time without a success after which a failing endpoint is disabled and its owner told.',
  ),
  operatorMail: text(
    undefined,
    { charactersMax: 254, refuse: refuseMail },
    'Address that is told of endpoints whose owner is no account, such as those made with the administrator key.',
  ),
  secretOverlapSecondsMax: integer(
    { unit: 'seconds', default: dayS, least: 0, most: dayS },
    'How long a secret that was rotated away may go on signing beside the new one; then 422.',
  ),
  resendSeconds: integer(
    { unit: 'seconds', default: 15 * dayS, least: 1, most: yearS },
    'Age up to which a delivery may be sent again by hand; then 409.',
  ),
  resendCommandLineSeconds: integer(
    { unit: 'seconds', default: 30 * dayS, least: 1, most: yearS },
    'The same for the command line.',
  ),
  deliveryRetentionSeconds: integer(
    { unit: 'seconds', default: 31 * dayS, least: minuteS, most: 10 * yearS },
    'How long deliveries and their attempts are kept after their last change.',
  ),
});
