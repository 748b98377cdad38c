/** Settings of accounts, their credentials and the mail about them (§5, §8). */
import { refuseMail, refuseMailUrl, refusePublicUrl, refuseSmtpUrl } from '../refusals.ts';
import { choice, integer, section, text, toggle } from '../setting.ts';

const MiB = 1024 * 1024;
const minuteS = 60;
const hourS = 3600;
const dayS = 86_400;
const yearS = 366 * dayS;

export const accountsSettings = section('Accounts', {
  publicUrl: text(
    undefined,
    { charactersMax: 2000, refuse: refusePublicUrl },
    'Origin that clients see, such as `https://api.example`: issuer and audience of access tokens, and where OpenID providers lead back to. Without it tokens name the store that they are good for, and providers lead back to the address listened on.',
  ),
  registration: choice(
    ['open', 'closed'],
    'open',
    'Whether anyone may register, or administrators alone make accounts.',
  ),
  verifiedEmailRequired: toggle('Refuses logins to an account until its e-mail address is verified.'),
  accessTokenSeconds: integer(
    { unit: 'seconds', default: 15 * minuteS, least: 1, most: dayS },
    'Lifetime of an access token.',
  ),
  refreshTokenSeconds: integer(
    { unit: 'seconds', default: 14 * dayS, least: 1, most: yearS },
    'Time in which a refresh token must be used.',
  ),
  sessionIdleSeconds: integer(
    { unit: 'seconds', default: dayS, least: 1, most: yearS },
    'Time without a request after which a session cookie is no longer good.',
  ),
  sessionSeconds: integer(
    { unit: 'seconds', default: 30 * dayS, least: 1, most: yearS },
    'Time after which a session ends however busy it is, with its refresh tokens and its cookie.',
  ),
  sessionsPerAccountMax: integer(
    { unit: 'sessions', default: 100, least: 1, most: 10_000 },
    'Sessions that an account may have; a further login ends the oldest.',
  ),
  sessionSameSite: choice(['Lax', 'Strict'], 'Lax', '`SameSite` of the session cookie.'),
  signingAlgorithm: choice(['EdDSA', 'ES256', 'RS256'], 'EdDSA', 'Algorithm of new signing keys.'),
  signingKeySeconds: integer(
    { unit: 'seconds', default: 30 * dayS, least: minuteS, most: 10 * yearS },
    'Age at which a signing key is replaced. The next one is published before it is used, the last one until its tokens are over.',
  ),
  tokenCharactersMax: integer(
    { unit: 'characters', default: 8192, least: 256, most: 65_536 },
    'Length of a bearer token; a longer one is invalid.',
  ),
  passwordCharactersMin: integer(
    { unit: 'characters', default: 8, least: 1, most: 256 },
    'Least length of a new password; then 422.',
  ),
  passwordBytesMax: integer(
    { unit: 'bytes', default: 1024, least: 64, most: 65_536 },
    'Length of a password in UTF-8; a longer new one is 422, and no password at a login.',
  ),
  passwordMemoryKibibytes: integer(
    { unit: 'KiB', default: 19_456, least: 8, most: 4_194_304 },
    'Memory of one argon2id hash. Hashes made with other costs are renewed at the next login.',
  ),
  passwordPasses: integer(
    { unit: 'passes', default: 2, least: 1, most: 100 },
    'Passes of argon2id over its memory.',
  ),
  passwordHashesWaitingMax: integer(
    { unit: 'hashes', default: 128, least: 1, most: 100_000 },
    'Passwords that may wait to be hashed; further logins are answered 503.',
  ),
  loginAttempts: integer(
    { unit: 'attempts', default: 5, least: 0, most: 1_000_000 },
    'Failed logins within `loginWindowSeconds`, for each account and for each address on its own; then 429. 0 sets no limit.',
  ),
  loginWindowSeconds: integer(
    { unit: 'seconds', default: 15 * minuteS, least: 1, most: dayS },
    'Time in which failed logins are counted.',
  ),
  verificationCodeSeconds: integer(
    { unit: 'seconds', default: dayS, least: 1, most: 30 * dayS },
    'Time that the code which verifies an e-mail address is good.',
  ),
  resetCodeSeconds: integer(
    { unit: 'seconds', default: hourS, least: 1, most: dayS },
    'Time that the code which resets a password is good.',
  ),
  signInSeconds: integer(
    { unit: 'seconds', default: 10 * minuteS, least: 1, most: hourS },
    'Time that a sign-in by an OpenID provider may take.',
  ),
  keyOverlapSecondsMax: integer(
    { unit: 'seconds', default: 7 * dayS, least: 0, most: yearS },
    'Longest time that a rotated API key may stay good beside its successor; then 422.',
  ),
  keyUseSeconds: integer(
    { unit: 'seconds', default: 5 * minuteS, least: 1, most: dayS },
    'Least time between two notes of when an API key was last used.',
  ),
  verifiedCredentialsBytesMax: integer(
    { unit: 'bytes', default: 48 * MiB, least: 0, most: 65_536 * MiB },
    'Memory for verified credentials, each kept until it ends or is revoked: about 2 KiB for one; others are verified anew.',
  ),
  issuerTimeoutMs: integer(
    { unit: 'ms', default: 5000, least: 100, most: 60_000 },
    'Time that a trusted issuer or an OpenID provider has to answer.',
  ),
  auditSeconds: integer(
    { unit: 'seconds', default: yearS, least: minuteS, most: 100 * yearS },
    'Time that the audit trail is kept.',
  ),
  auditWaitingMax: integer(
    { unit: 'facts', default: 10_000, least: 1, most: 1_000_000 },
    'Facts that change nothing else and wait to be written to the audit trail; further ones are only logged.',
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
    'Sender of mails.',
  ),
  mailVerificationUrl: text(
    undefined,
    { charactersMax: 2000, refuse: refuseMailUrl },
    'Page of the application that verifies an address, with `{code}` where the code goes. Without it the mail holds the code alone.',
  ),
  mailResetUrl: text(
    undefined,
    { charactersMax: 2000, refuse: refuseMailUrl },
    'Page of the application that sets a new password, with `{code}` where the code goes. Without it the mail holds the code alone.',
  ),
  mailTimeoutMs: integer(
    { unit: 'ms', default: 15_000, least: 100, most: 600_000 },
    'Time that one attempt to send a mail may take.',
  ),
  mailAttemptsMax: integer(
    { unit: 'attempts', default: 4, least: 1, most: 100 },
    'Attempts to send a mail, further apart each time.',
  ),
  mailsWaitingMax: integer(
    { unit: 'mails', default: 1000, least: 1, most: 1_000_000 },
    'Mails that may wait to be sent; further ones are given up and logged.',
  ),
});
