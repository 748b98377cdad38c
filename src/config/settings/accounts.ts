/** Settings of accounts, their credentials and the mail about them (§5, §8). */
import {
  refuseMail,
  refuseMailUrl,
  refusePublicUrl,
  refuseSmtpUrl,
  withoutEndingSlash,
} from '../refusals.ts';
import { choice, fixed, integer, section, text, toggle } from '../setting.ts';

const MiB = 1024 * 1024;
const minuteS = 60;
const hourS = 3600;
const dayS = 86_400;
const yearS = 366 * dayS;

export const accountsSettings = section('Accounts', {
  publicUrl: text(
    undefined,
    { charactersMax: 2000, refuse: refusePublicUrl, normalize: withoutEndingSlash },
    'URL that clients see: an origin such as `https://api.example`, or with the path that a proxy removes from requests, such as `https://example.com/backend`. It begins every URL that Comity gives out, the issuer and audience of access tokens, and the URL that OpenID providers redirect to. Without it, tokens name the store in which they are valid, and providers redirect to the address that Comity listens on.',
  ),
  registration: choice(
    ['open', 'closed'],
    'open',
    '`open`: anyone may register. `closed`: only administrators create accounts.',
  ),
  verifiedEmailRequired: toggle('Refuses logins to an account until its e-mail address is verified.'),
  accessTokenSeconds: integer(
    { unit: 'seconds', default: 15 * minuteS, least: 1, most: dayS },
    'Lifetime of an access token.',
  ),
  accessTokenType: choice(
    ['at+jwt', 'JWT'],
    'at+jwt',
    '`typ` of new access tokens. RFC 9068 requires `at+jwt`; some libraries accept only `JWT`. Those of type `JWT` are accepted only with `JWT`.',
  ),
  refreshTokenSeconds: integer(
    { unit: 'seconds', default: 14 * dayS, least: 1, most: yearS },
    'Lifetime of a refresh token.',
  ),
  refreshReuseSeconds: integer(
    { unit: 'seconds', default: 10, least: 0, most: 300 },
    'Time for which a refresh token that was exchanged is answered with the same new pair, as after a lost answer or in a second tab. A later use ends its session.',
  ),
  sessionIdleSeconds: integer(
    { unit: 'seconds', default: dayS, least: 1, most: yearS },
    'Time without a request after which a session cookie is no longer valid.',
  ),
  sessionSeconds: integer(
    { unit: 'seconds', default: 30 * dayS, least: 1, most: yearS },
    'Time after its login at which a session ends, with its refresh tokens and its cookie, even if it is in use.',
  ),
  sessionsPerAccountMax: integer(
    { unit: 'sessions', default: 100, least: 1, most: 10_000 },
    'Sessions that one account may have; a further login ends the oldest.',
  ),
  sessionSameSite: choice(['Lax', 'Strict'], 'Lax', '`SameSite` of the session cookie.'),
  accountBytesMax: integer(
    { unit: 'bytes', default: 64 * 1024, least: 4096, most: MiB },
    'Length of the content of a request that changes an account, and of the account itself; a longer one is answered 413. Every request reads the account of its caller.',
  ),
  viewsPerOwnerMax: integer(
    { unit: 'views', default: 100, least: 1, most: 1000 },
    'Saved views that one account or key may have; a further one is answered 409.',
  ),
  signingAlgorithm: choice(
    ['EdDSA', 'ES256', 'RS256'],
    'EdDSA',
    'Algorithm of new signing keys. Every library verifies `RS256`, not every one `EdDSA`.',
  ),
  signingKeySeconds: integer(
    { unit: 'seconds', default: 30 * dayS, least: minuteS, most: 10 * yearS },
    'Age at which a signing key is replaced. The next key is published before its first use, the previous one until its last token has expired.',
  ),
  tokenCharactersMax: fixed(
    { unit: 'characters', value: 8192 },
    'Length of a bearer token; a longer one is invalid.',
  ),
  passwordCharactersMin: integer(
    { unit: 'characters', default: 8, least: 1, most: 256 },
    'Least length of a new password; a shorter one is answered 422.',
  ),
  passwordBytesMax: fixed(
    { unit: 'bytes', value: 1024 },
    'Length of a password in UTF-8; a longer new one is answered 422, and a longer one is wrong at every login.',
  ),
  passwordMemoryKibibytes: integer(
    { unit: 'KiB', default: 19_456, least: 8, most: 4_194_304 },
    'Memory of one argon2id hash. Hashes made with other costs are renewed at the next login.',
  ),
  passwordPasses: integer(
    { unit: 'passes', default: 2, least: 1, most: 100 },
    'Passes of argon2id over its memory.',
  ),
  passwordHashesWaitingMax: fixed(
    { unit: 'hashes', value: 128 },
    'Passwords that may wait to be hashed; further logins are answered 503.',
  ),
  loginAttempts: integer(
    { unit: 'attempts', default: 5, least: 0, most: 1_000_000 },
    'Failed logins within `loginWindowSeconds`, counted by account and by address; further ones are answered 429. 0 sets no limit.',
  ),
  loginWindowSeconds: integer(
    { unit: 'seconds', default: 15 * minuteS, least: 1, most: dayS },
    'Time in which failed logins are counted.',
  ),
  secondFactor: choice(
    ['optional', 'administrators', 'required'],
    'optional',
    'Accounts that need a second factor: none, those with the role `administrator` or the scope `admin`, or all. Until such an account has one, its credentials, API keys included, can only add it. The administrator key is not an account.',
  ),
  secondFactorChallengeSeconds: integer(
    { unit: 'seconds', default: 5 * minuteS, least: 30, most: hourS },
    'Time between a correct password and the code of the second factor, and time to confirm a new one.',
  ),
  passkeyRegistration: toggle('Lets a registration give a passkey in place of a password.'),
  passkeysPerAccountMax: integer(
    { unit: 'passkeys', default: 20, least: 1, most: 100 },
    'Passkeys that one account may have; a further one is answered 409.',
  ),
  passkeyRelyingPartyId: text(
    undefined,
    { charactersMax: 253 },
    'Domain that passkeys belong to, such as `shop.example`: the host of the pages that use them, or one above it. Without it, the host of the first of `passkeyOrigins`. Passkeys are bound to it for ever.',
  ),
  passkeyOrigins: text(
    '',
    { charactersMax: 4000 },
    'Origins of the pages that may use passkeys, separated by commas. Without it, `publicUrl`, and without that `localhost` with the port that Comity listens on.',
  ),
  totpWindowStepsMax: integer(
    { unit: 'steps', default: 1, least: 0, most: 10 },
    'Steps of 30 seconds by which the clock of an authenticator application may be early or late.',
  ),
  verificationCodeSeconds: integer(
    { unit: 'seconds', default: dayS, least: 1, most: 30 * dayS },
    'Lifetime of the code that verifies an e-mail address.',
  ),
  resetCodeSeconds: integer(
    { unit: 'seconds', default: hourS, least: 1, most: dayS },
    'Lifetime of the code that resets a password.',
  ),
  emailUndoSeconds: integer(
    { unit: 'seconds', default: dayS, least: 1, most: 30 * dayS },
    'Time for which the earlier address of an account can take back that its owner changed it.',
  ),
  invitationCodeSeconds: integer(
    { unit: 'seconds', default: 7 * dayS, least: 1, most: 30 * dayS },
    'Lifetime of the code of an invitation.',
  ),
  mailLoginSeconds: integer(
    { unit: 'seconds', default: 10 * minuteS, least: 30, most: hourS },
    'Lifetime of a code or a link that logs in.',
  ),
  portalLinkSeconds: fixed(
    { unit: 'seconds', value: hourS },
    'Lifetime of a link to the portal, and of the session that it opens, if the request does not name one.',
  ),
  portalLinkSecondsMax: integer(
    { unit: 'seconds', default: 7 * dayS, least: 1, most: 30 * dayS },
    'Longest lifetime of a link to the portal; a longer `expiresIn` is answered 422.',
  ),
  signInSeconds: fixed(
    { unit: 'seconds', value: 10 * minuteS },
    'Time that a sign-in with an OpenID provider may take.',
  ),
  keyOverlapSecondsMax: integer(
    { unit: 'seconds', default: 7 * dayS, least: 0, most: yearS },
    'Longest time that a rotated API key may stay valid beside its successor; a longer one is answered 422.',
  ),
  keyUseSeconds: fixed(
    { unit: 'seconds', value: 5 * minuteS },
    'Least time between two updates of the time at which an API key was last used.',
  ),
  verifiedCredentialsBytesMax: integer(
    { unit: 'bytes', default: 48 * MiB, least: 0, most: 65_536 * MiB },
    'Memory for verified credentials, about 2 KiB each. Comity keeps each until it expires or is revoked, and verifies the others again with each request.',
  ),
  issuerTimeoutMs: integer(
    { unit: 'ms', default: 5000, least: 100, most: 60_000 },
    'Time within which a trusted issuer or an OpenID provider must answer.',
  ),
  auditSeconds: integer(
    { unit: 'seconds', default: yearS, least: minuteS, most: 100 * yearS },
    'Time after which entries of the audit trail are deleted.',
  ),
  auditWaitingMax: fixed(
    { unit: 'facts', value: 10_000 },
    'Audit entries that belong to no other write and wait to be written; further ones are only logged.',
  ),
});

export const mailSettings = section('Mail', {
  smtpUrl: text(
    undefined,
    { charactersMax: 2000, secret: true, refuse: refuseSmtpUrl },
    'Mail server, as `smtps://user:password@host:465` or `smtp://host:587`. Without it no mail is sent, and addresses cannot be verified.',
  ),
  mailFrom: text(
    'Comity <no-reply@localhost>',
    { charactersMax: 320, refuse: refuseMail },
    'Sender of mails, and the host in their `Message-ID`.',
  ),
  mailVerificationUrl: text(
    undefined,
    { charactersMax: 2000, refuse: refuseMailUrl },
    'Page of the application that verifies an address, with `{code}` in place of the code. Without it, the mail has only the code.',
  ),
  mailResetUrl: text(
    undefined,
    { charactersMax: 2000, refuse: refuseMailUrl },
    'Page of the application that sets a new password, with `{code}` in place of the code. Without it, the mail has only the code.',
  ),
  mailInvitationUrl: text(
    undefined,
    { charactersMax: 2000, refuse: refuseMailUrl },
    'Page of the application that accepts an invitation, with `{code}` in place of the code. Without it, the mail has only the code.',
  ),
  mailLoginUrl: text(
    undefined,
    { charactersMax: 2000, refuse: refuseMailUrl },
    'Page of the application that finishes a login by a mailed link, with `{code}` in place of the code, which is good only in the browser that asked for it. `accounts.passwordless.link` of the configuration needs it.',
  ),
  mailUndoUrl: text(
    undefined,
    { charactersMax: 2000, refuse: refuseMailUrl },
    'Page of the application that takes back a change of the address, with `{code}` in place of the code. Without it, the mail has only the code.',
  ),
  mailTimeoutMs: integer(
    { unit: 'ms', default: 15_000, least: 100, most: 600_000 },
    'Time that one attempt to send a mail may take.',
  ),
  mailAttemptsMax: integer(
    { unit: 'attempts', default: 8, least: 1, most: 100 },
    'Attempts to send a mail; after the last one it is `failed`. By default they are 10 seconds, 1, 5 and 30 minutes, and 2, 5 and 10 hours apart; further ones 10 hours.',
  ),
  mailsWaitingMax: fixed(
    { unit: 'mails', value: 1000 },
    'Mails of accounts that were requested and wait for their code to be made, which takes milliseconds; further requests are dropped and logged.',
  ),
  mailsInFlightMax: fixed(
    { unit: 'mails', value: 4 },
    'Mails that are sent at once, each over a connection of its own.',
  ),
  mailRecipientsMax: integer(
    { unit: 'addresses', default: 50, least: 1, most: 1000 },
    'Recipients of one mail; `mail.send` refuses more.',
  ),
  mailBytesMax: integer(
    { unit: 'bytes', default: MiB, least: 1024, most: 16 * MiB },
    'Subject, text, HTML, header fields and attachments of one mail, texts in UTF-8; `mail.send` refuses more.',
  ),
  mailRetentionSeconds: integer(
    { unit: 'seconds', default: 30 * dayS, least: dayS, most: 10 * yearS },
    'Time after their last change at which mails are deleted. The content is deleted when the mail was sent.',
  ),
});
