/** Settings of the program as a whole. */
import { refuseKey } from '../refusals.ts';
import { choice, section, text, toggle } from '../setting.ts';

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
  logLevel: choice(
    ['fatal', 'error', 'warn', 'info', 'debug', 'silent'],
    'info',
    'Least level of a log line. `debug` logs every answer, and shows the stack of an error that ends the program.',
  ),
  development: toggle('Adds `Comity-Trace` to every answer: the decisions that led to its status.'),
});
