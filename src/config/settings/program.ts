/** Settings of the program as a whole. */
import { refuseKey, refuseSecretKey, refuseSecretKeys } from '../refusals.ts';
import { choice, integer, section, text, toggle } from '../setting.ts';

export const programSettings = section('Program', {
  config: text(
    'comity.config.ts',
    {},
    'Path of the configuration file; `npm start` serves `examples/shop/comity.config.ts`.',
  ),
  data: text('./data', {}, 'Folder of the embedded store and its files; created when missing.'),
  adminKey: text(
    undefined,
    { charactersMax: 255, secret: true, refuse: refuseKey },
    'A key, starting with `sk_`, that is accepted as administrator. Without it one is made at the first start and printed once.',
  ),
  secretKey: text(
    undefined,
    { charactersMax: 64, secret: true, refuse: refuseSecretKey },
    'Key that encrypts the secrets in the store: 32 random octets in base64 or hexadecimal. Without it a key file `secret.key` is made in the folder `data`. Backups cannot be used without the key.',
  ),
  secretKeyPrevious: text(
    undefined,
    { secret: true, refuse: refuseSecretKeys },
    'Keys that `COMITY_SECRET_KEY` replaces, with commas between: what they encrypted is still read. `comity secrets rotate` ends the need for them.',
  ),
  logLevel: choice(
    ['fatal', 'error', 'warn', 'info', 'debug', 'silent'],
    'info',
    'Least level of a log line. `debug` logs every answer, and shows the stack of an error that ends the program.',
  ),
  loopHeldMs: integer(
    { unit: 'ms', default: 50, least: 5, most: 60_000 },
    'Time for which one request may hold the event loop before the log names it (`the event loop was held`).',
  ),
  development: toggle('Adds `Comity-Trace` to every answer: the decisions that led to its status.'),
});
